-- name: begin_effect^
-- The intent, durable before the call: locks the job, decides whether the step may begin, records effect and
-- attempt (a refused one too), closes attempts that never reported back, holds the budget back, and moves the job to running.
-- Everything the caller needs for the call comes back in the same row.
WITH before AS (
    SELECT * FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), recorded AS (
    SELECT state, fingerprint, result FROM effects WHERE key = :key
), verdict AS (
    SELECT CASE
        WHEN state NOT IN ('pending', 'running', 'retry_wait', 'waiting_approval')
             AND NOT (:kind::text = 'undo' AND state = 'dead') THEN 'not_live'
        WHEN EXISTS (SELECT FROM workers WHERE id = :worker::text AND lost_at IS NOT NULL) THEN 'fenced'
        WHEN cancel_requested_at IS NOT NULL AND :kind::text <> 'undo' THEN 'cancel_requested'
        WHEN EXISTS (SELECT FROM recorded WHERE recorded.state IN ('completed', 'undone')) THEN 'go'
        WHEN :grant::text IS NOT NULL AND NOT EXISTS (
             SELECT FROM grants g
              WHERE g.tenant = before.tenant AND g."user" = before."user" AND g.action = :grant::text)
             THEN 'access_denied'
        WHEN :kind::text <> 'undo' AND deadline_at <= now() THEN 'deadline_exceeded'
        WHEN budget_tokens < tokens_in + tokens_out + tokens_reserved + :reserve_tokens::bigint
             OR budget_usd < usd + usd_reserved + :reserve_usd::numeric THEN 'budget_exceeded'
        ELSE 'go' END AS verdict
      FROM before
), effect AS (
    INSERT INTO effects (key, job_id, step, kind, name, effect_class, fingerprint)
    SELECT :key::text, :job_id::text, :step::text, :kind::text, :name::text, :effect_class::text,
           :fingerprint::text
      FROM verdict WHERE verdict = 'go'
    ON CONFLICT (key) DO UPDATE
       SET in_doubt = effects.state = 'begun',
           begun_count = effects.begun_count + 1,
           -- In doubt, an attempt first looks up; the time of the call in doubt must not move with it.
           sent_at = CASE WHEN effects.state = 'begun' THEN effects.sent_at ELSE now() END,
           state = CASE WHEN effects.state = 'released' THEN 'begun' ELSE effects.state END
     WHERE effects.fingerprint = excluded.fingerprint
    RETURNING key, state, in_doubt, result, sent_at, generation
), crashed AS (
    UPDATE attempts SET outcome = 'crashed', finished_at = now()
      FROM effect WHERE attempts.effect_key = effect.key AND attempts.outcome = 'running'
), started AS (
    INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, tokens_reserved, usd_reserved)
    SELECT :job_id::text, :step::text, key, :run_id::text, :attempt::integer, :worker::text,
           :reserve_tokens::bigint, :reserve_usd::numeric
      FROM effect WHERE state = 'begun'
    RETURNING id
), refused AS (
    INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, outcome, category, message, finished_at)
    SELECT :job_id::text, :step::text, :key::text, :run_id::text, :attempt::integer, :worker::text, 'failed',
           CASE verdict WHEN 'go' THEN 'key_conflict' ELSE verdict END,
           'refused before it began' || CASE WHEN verdict = 'access_denied' THEN ': no grant for ' || :grant::text ELSE '' END,
           now()
      FROM verdict
     WHERE verdict IN ('access_denied', 'deadline_exceeded', 'budget_exceeded')
        OR (verdict = 'go' AND NOT EXISTS (SELECT FROM effect))
), job AS (
    UPDATE jobs
       SET state = CASE WHEN before.state = 'dead' THEN 'dead' ELSE 'running' END,
           failure = CASE WHEN before.state = 'dead' THEN jobs.failure END,
           step = :step::text, attempt = :attempt::integer, next_attempt_at = NULL,
           started_at = coalesce(jobs.started_at, now()), updated_at = now(),
           tokens_reserved = jobs.tokens_reserved
               + CASE WHEN EXISTS (SELECT FROM started) THEN :reserve_tokens::bigint ELSE 0 END,
           usd_reserved = jobs.usd_reserved
               + CASE WHEN EXISTS (SELECT FROM started) THEN :reserve_usd::numeric ELSE 0 END,
           event_seq = jobs.event_seq + CASE WHEN before.state IN ('pending', 'retry_wait') THEN 1 ELSE 0 END
      FROM before, effect
     WHERE jobs.id = before.id
    RETURNING jobs.id, jobs.event_seq, before.state AS previous
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT id, event_seq, CASE previous WHEN 'pending' THEN 'started' ELSE 'attempt_started' END,
           jsonb_build_object('step', :step::text, 'attempt', :attempt::integer)
      FROM job WHERE previous IN ('pending', 'retry_wait')
)
SELECT verdict.verdict, before.state AS job_state, before.tenant, before."user", before.agent,
       before.policy_version, before.input, before.deadline_at, (before.deadline_at - now()) AS remaining,
       effect.state AS effect_state, effect.in_doubt, effect.result,
       (now() - effect.sent_at) AS since_sent, effect.generation,
       recorded.fingerprint AS recorded_fingerprint, started.id AS attempt_id,
       CASE WHEN :with_done::boolean THEN (
           SELECT coalesce(jsonb_agg(jsonb_build_object('step', e.step, 'kind', e.kind, 'name', e.name,
                                                        'result', e.result) ORDER BY e.begun_at, e.key), '[]')
             FROM effects e WHERE e.job_id = :job_id AND e.state = 'completed') END AS done
  FROM before CROSS JOIN verdict
  LEFT JOIN effect ON true LEFT JOIN started ON true LEFT JOIN recorded ON true;

-- name: send_again!
-- The doubt is resolved: the earlier call had no effect, and cannot have it any more. From here on this one may.
UPDATE effects SET sent_at = now() WHERE key = :key AND state = 'begun';

-- name: lock_effect^
-- Taken first in the transaction of a transactional tool: of two live attempts the later one waits here,
-- and then finds the receipt. (Every statement locks the job first, then the effect, then attempts: so none ever
-- waits in a circle.)
WITH job AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = (SELECT job_id FROM effects WHERE key = :key) FOR NO KEY UPDATE
)
SELECT effects.state, effects.result
  FROM job JOIN effects ON effects.job_id = job.id
 WHERE effects.key = :key
   FOR UPDATE OF effects;

-- name: complete_effect^
-- The receipt, once: whoever comes second changes nothing but its own attempt, and so does a worker that was
-- given up (except that a model's reply which it did receive is kept: it is paid for, and harmless). The
-- attempt's reservation is settled by what the call really cost. Nothing is told of a job after its end.
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), completed AS (
    UPDATE effects SET state = 'completed', in_doubt = false, result = :result::jsonb, completed_at = now()
      FROM locked
     WHERE effects.job_id = locked.id AND key = :key AND state = 'begun'
       AND (effect_class = 'read_only' OR NOT EXISTS (
            SELECT FROM workers WHERE workers.id = :worker::text AND lost_at IS NOT NULL))
    RETURNING job_id, step, kind, name
), undone AS (
    UPDATE effects SET state = 'undone'
     WHERE key = :undone_key::text AND state = 'completed' AND EXISTS (SELECT FROM completed)
), held AS MATERIALIZED (
    SELECT attempts.id, attempts.job_id, attempts.tokens_reserved, attempts.usd_reserved
      FROM locked JOIN attempts ON attempts.job_id = locked.id
     WHERE attempts.id = :attempt_id AND (SELECT count(*) FROM completed) >= 0 -- after the effect
       FOR UPDATE OF attempts
), settled AS (
    UPDATE attempts
       SET outcome = 'succeeded', finished_at = now(), model = :model::text, tokens_reserved = 0,
           usd_reserved = 0, tokens_in = :tokens_in::bigint, tokens_out = :tokens_out::bigint,
           usd = :usd::numeric
      FROM held WHERE attempts.id = held.id
), job AS (
    UPDATE jobs
       SET tokens_in = jobs.tokens_in + :tokens_in::bigint, tokens_out = jobs.tokens_out + :tokens_out::bigint,
           usd = jobs.usd + :usd::numeric, tokens_reserved = jobs.tokens_reserved - held.tokens_reserved,
           usd_reserved = jobs.usd_reserved - held.usd_reserved, updated_at = now(),
           event_seq = jobs.event_seq + CASE WHEN jobs.finalized_at IS NULL
               THEN (SELECT count(*)::integer FROM completed) ELSE 0 END
      FROM held WHERE jobs.id = held.job_id
    RETURNING jobs.id, jobs.event_seq, jobs.finalized_at
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT job.id, job.event_seq, 'step_completed',
           jsonb_build_object('step', completed.step, 'kind', completed.kind, 'name', completed.name)
      FROM job CROSS JOIN completed WHERE job.finalized_at IS NULL
)
SELECT EXISTS (SELECT FROM completed) AS completed;

-- name: abandon_effect!
-- Before an undo: what certainly was not done can no longer be done by a late attempt. (The row lock makes
-- this wait for a transaction that is about to complete it, and then leave it alone.)
UPDATE effects SET state = 'abandoned', in_doubt = false
 WHERE key = :key AND (state = 'released' OR (state = 'begun' AND effect_class IN ('transactional', 'read_only')));

-- name: adopt_effect!
-- The destination was asked, and has it.
UPDATE effects SET state = 'completed', in_doubt = false, result = :result::jsonb, completed_at = now()
 WHERE key = :key AND state = 'begun';

-- name: give_up_effect!
-- The destination was asked: it has it not, and the call cannot land any more.
UPDATE effects SET state = 'abandoned', in_doubt = false WHERE key = :key AND state = 'begun';

-- name: read_effect^
SELECT *, (now() - sent_at) AS since_sent FROM effects WHERE key = :key;

-- name: effects_of_job
SELECT *, (now() - sent_at) AS since_sent FROM effects WHERE job_id = :job_id ORDER BY begun_at, key;

-- name: fail_attempt^
-- A failed try. `release` says that the call certainly had no effect and no cost; otherwise the effect stays
-- in doubt and its reservation stays held. `wait_seconds` is NULL when no attempt follows.
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = (SELECT job_id FROM attempts WHERE id = :attempt_id) FOR NO KEY UPDATE
), effect AS MATERIALIZED (
    SELECT effects.key FROM locked JOIN effects ON effects.job_id = locked.id
     WHERE effects.key = (SELECT effect_key FROM attempts WHERE id = :attempt_id)
       FOR NO KEY UPDATE OF effects
), failed AS (
    UPDATE attempts
       SET outcome = 'failed', category = :category::text, message = :message::text,
           wait_seconds = :wait_seconds::double precision, finished_at = now(),
           next_attempt_at = now() + make_interval(secs => :wait_seconds::double precision)
      FROM effect
     WHERE attempts.id = :attempt_id AND attempts.effect_key = effect.key AND outcome = 'running'
    RETURNING id, job_id, effect_key, step, attempt, next_attempt_at, tokens_reserved, usd_reserved
), released AS (
    -- What this attempt certainly did not do, an earlier one may have done all the same.
    UPDATE effects SET state = 'released', in_doubt = false
      FROM failed
     WHERE effects.key = failed.effect_key AND effects.state = 'begun' AND :release::boolean
       AND (NOT effects.in_doubt OR effects.effect_class IN ('transactional', 'read_only'))
), job AS (
    UPDATE jobs
       SET state = CASE WHEN failed.next_attempt_at IS NOT NULL AND jobs.state = 'running'
                        THEN 'retry_wait' ELSE jobs.state END,
           next_attempt_at = CASE WHEN jobs.state = 'running' THEN failed.next_attempt_at
                                  ELSE jobs.next_attempt_at END,
           failure = CASE WHEN jobs.state = 'dead' THEN jobs.failure ELSE :failure::jsonb END,
           tokens_reserved = jobs.tokens_reserved
               - CASE WHEN :release::boolean THEN failed.tokens_reserved ELSE 0 END,
           usd_reserved = jobs.usd_reserved - CASE WHEN :release::boolean THEN failed.usd_reserved ELSE 0 END,
           updated_at = now(), event_seq = jobs.event_seq + (failed.next_attempt_at IS NOT NULL)::integer
      FROM failed WHERE jobs.id = failed.job_id
    RETURNING jobs.id, jobs.event_seq
)
INSERT INTO job_events (job_id, seq, type, data)
SELECT job.id, job.event_seq, 'retry_scheduled',
       jsonb_build_object('step', failed.step, 'attempt', failed.attempt, 'category', :category::text,
                          'next_attempt_at', failed.next_attempt_at)
  FROM job CROSS JOIN failed WHERE failed.next_attempt_at IS NOT NULL
RETURNING seq;
