-- name: live_window
-- The next live jobs in the order of their deadlines, moving or not: so each look costs the same, however many
-- there are. `still` is true of those that nothing has happened to for a while.
SELECT id AS job_id, state, generation, step, deadline_at, dispatched_at IS NOT NULL AS dispatched,
       cancel_requested_at IS NOT NULL AS cancelling,
       greatest(updated_at, dispatched_at) < now() - make_interval(secs => :still_seconds::double precision) AS still,
       ARRAY (SELECT topic FROM outbox WHERE outbox.job_id = jobs.id) AS queued
  FROM jobs
 WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
   AND (deadline_at, id) > (coalesce(:after_at::timestamptz, '-infinity'), :after_id::text)
 ORDER BY deadline_at, id LIMIT :window::integer;

-- name: overdue
-- Live jobs that should have died of their deadline, and did not. One that is ending (its answer is written, or it
-- is being undone) may do so after its deadline, and has longer.
SELECT id AS job_id, state, generation, step
  FROM jobs
 WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
   AND deadline_at < now() - make_interval(secs => :grace_seconds::double precision)
   AND updated_at < now() - make_interval(secs => :grace_seconds::double precision)
   AND ((cancel_requested_at IS NULL
         AND NOT EXISTS (SELECT FROM effects
                          WHERE effects.job_id = jobs.id
                            AND (kind = 'undo' OR (step = 'answer' AND effects.state = 'completed'))))
        OR greatest(deadline_at, updated_at) < now() - make_interval(secs => :ending_seconds::double precision))
 ORDER BY deadline_at, id LIMIT :batch::integer;

-- name: words_lost
-- Words of reviewers that were delivered a while ago (no row of them is left) and not carried out.
SELECT dead_letters.id AS job_id
  FROM dead_letters JOIN jobs ON jobs.id = dead_letters.id
 WHERE dead_letters.state IN ('redrive_requested', 'discard_requested') AND dead_letters.id > :after_id::text
   AND jobs.state = 'dead' AND jobs.updated_at < now() - make_interval(secs => :still_seconds::double precision)
   AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = jobs.id AND topic IN ('redrive_job', 'discard_job'))
 ORDER BY dead_letters.id LIMIT :batch::integer;

-- name: requeue_start^
-- A start whose row was lost. (Rows that are delivered leave in the transaction that sets dispatched_at.)
WITH queued AS (
    INSERT INTO outbox (topic, job_id, tenant, priority)
    SELECT 'start_job', id, tenant, priority FROM jobs
     WHERE id = :job_id AND state = 'pending' AND dispatched_at IS NULL
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = jobs.id AND topic = 'start_job')
    RETURNING id
)
SELECT EXISTS (SELECT FROM queued) AS queued, (SELECT pg_notify('agentjobs_outbox', '') FROM queued);

-- name: requeue_cancel^
-- A cancel that was promised, whose row was lost.
WITH queued AS (
    INSERT INTO outbox (topic, job_id, tenant)
    SELECT 'cancel_job', id, tenant FROM jobs
     WHERE id = :job_id AND cancel_requested_at IS NOT NULL
       AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = jobs.id AND topic = 'cancel_job')
    RETURNING id
)
SELECT EXISTS (SELECT FROM queued) AS queued, (SELECT pg_notify('agentjobs_outbox', '') FROM queued);

-- name: final_of
-- Which of these jobs ended a while ago. (A final job has nothing left to do or to undo.)
SELECT id FROM jobs
 WHERE id = ANY (:ids::text[]) AND finalized_at < now() - make_interval(secs => :grace_seconds::double precision);

-- name: work_waits$
-- Whether a step of any job should be under way, and nothing has moved it for a while.
SELECT EXISTS (
    SELECT FROM jobs
     WHERE dispatched_at IS NOT NULL
       AND (state IN ('pending', 'running') OR (state = 'retry_wait' AND next_attempt_at < now()))
       AND greatest(updated_at, dispatched_at) < now() - make_interval(secs => :still_seconds::double precision));

-- name: absent_identities
-- Of these workers, those that have stopped or were lost under every id that they had.
SELECT identity FROM workers WHERE identity = ANY (:identities::text[])
 GROUP BY identity HAVING bool_and(stopped_at IS NOT NULL OR lost_at IS NOT NULL);

-- name: note_finding$
-- Seen, or seen again. True when it is to be told now: at first, and then once in `tell_seconds`, over all relays.
INSERT INTO watch_findings AS known (kind, subject, detail) VALUES (:kind, :subject, :detail)
    ON CONFLICT ON CONSTRAINT watch_findings_pkey DO UPDATE
   SET last_seen_at = now(), detail = excluded.detail,
       told_at = CASE WHEN known.told_at < now() - make_interval(secs => :tell_seconds::double precision)
                      THEN now() ELSE known.told_at END
RETURNING told_at = now();

-- name: clear_finding$
-- True when it was there.
WITH cleared AS (DELETE FROM watch_findings WHERE kind = :kind AND subject = :subject RETURNING kind)
SELECT EXISTS (SELECT FROM cleared);

-- name: list_findings
SELECT kind, subject, since, last_seen_at, detail FROM watch_findings ORDER BY since;
