-- name: next_worker_number$
SELECT nextval('worker_numbers')::integer;

-- name: hold_worker_lock$
-- True when this session now holds it; it ends with the session and not before.
SELECT pg_try_advisory_lock(:lock_class::integer, :number::integer);

-- name: register_worker!
INSERT INTO workers (id, number, identity, build) VALUES (:id, :number, :identity, :build);

-- name: is_lost$
SELECT lost_at IS NOT NULL FROM workers WHERE id = :id;

-- name: mark_stopped!
UPDATE workers SET stopped_at = now() WHERE id = :id AND stopped_at IS NULL;

-- name: workers_without_lock
-- Present by their own word, but their session is gone. Not right after a start of the server: it has ended all
-- sessions, and the living come back within moments.
SELECT id FROM workers
 WHERE stopped_at IS NULL AND lost_at IS NULL
   AND now() - pg_postmaster_start_time() > make_interval(secs => :grace_seconds::double precision)
   AND NOT EXISTS (
       SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 2
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND classid = :lock_class::integer::oid AND objid = workers.number::oid);

-- name: mark_lost!
-- From here on the worker is fenced. (A begin of its own that is under way has taken its job's lock first, or
-- comes after this and is refused.)
UPDATE workers SET lost_at = now() WHERE id = ANY (:ids::text[]) AND lost_at IS NULL;

-- name: workers_to_take_over
-- Also those whose taker died in the middle.
SELECT id, identity, lost_at FROM workers WHERE lost_at IS NOT NULL AND taken_over_at IS NULL;

-- name: jobs_of_worker
-- Jobs of which it may hold something; what, only Temporal knows for certain. First those that it worked for (of
-- those that are over only the latest: their last record may be in its hands). Then live ones in which something has
-- just happened: it may have been given their next step, and have died before it began.
SELECT attempts.job_id
  FROM attempts JOIN jobs ON jobs.id = attempts.job_id JOIN workers ON workers.id = attempts.worker
 WHERE attempts.worker = :id
   AND (jobs.state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
        OR jobs.updated_at > workers.lost_at - interval '1 minute')
UNION
(SELECT jobs.id
   FROM jobs JOIN workers ON workers.id = :id
  WHERE dispatched_at IS NOT NULL AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
    AND greatest(jobs.updated_at, jobs.dispatched_at) > workers.lost_at - interval '1 minute'
  ORDER BY jobs.updated_at DESC LIMIT 500);

-- name: mark_taken_over!
-- What it had in hand crashed, and those jobs wait for another worker: due at once. (Most have been begun again by one
-- already, and are left alone.)
WITH taken AS (
    UPDATE workers SET taken_over_at = now() WHERE id = :id AND taken_over_at IS NULL RETURNING id
), locked AS MATERIALIZED (
    SELECT jobs.id FROM jobs
     WHERE id IN (SELECT job_id FROM attempts JOIN taken ON attempts.worker = taken.id WHERE outcome = 'running')
     ORDER BY id FOR NO KEY UPDATE
), crashed AS (
    UPDATE attempts SET outcome = 'crashed', finished_at = now()
      FROM locked CROSS JOIN taken
     WHERE attempts.job_id = locked.id AND attempts.worker = taken.id AND attempts.outcome = 'running'
    RETURNING attempts.id, attempts.job_id, attempts.step, attempts.attempt
), waiting AS (
    UPDATE jobs
       SET state = 'retry_wait', next_attempt_at = now(), updated_at = now(), event_seq = jobs.event_seq + 1,
           failure = jsonb_build_object('category', 'timeout', 'reason', 'timeout', 'step', crashed.step,
                                        'message', 'its worker died or was cut off: the next attempt is due at once')
      FROM crashed
     WHERE jobs.id = crashed.job_id AND jobs.state = 'running' AND jobs.step = crashed.step
    RETURNING jobs.id, jobs.event_seq, jobs.next_attempt_at, crashed.step, crashed.attempt, crashed.id AS attempt_id
)
INSERT INTO job_events (job_id, seq, type, data)
SELECT id, event_seq, 'retry_scheduled',
       jsonb_build_object('step', step, 'attempt', attempt, 'attempt_id', attempt_id, 'category', 'timeout',
                          'next_attempt_at', next_attempt_at)
  FROM waiting;
