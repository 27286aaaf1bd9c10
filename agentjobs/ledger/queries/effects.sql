-- name: begin_effect^
-- The intent, durable before the call: locks the job, decides whether the step may begin, records effect and
-- attempt (a refused one too), closes attempts that never reported back, holds the job's and the tenant's budget back, and
-- moves the job to running. Everything the caller needs for the call comes back in the same row.
WITH before AS (
    SELECT id, state, tenant, "user", agent, policy_version, input, deadline_at, cancel_requested_at, trace_id,
           budget_tokens, budget_usd, tokens_in, tokens_out, tokens_reserved, usd, usd_reserved
      FROM jobs WHERE id = :job_id FOR NO KEY UPDATE
), recorded AS (
    SELECT state, fingerprint, result FROM effects WHERE key = :key
), tried AS (
    -- Of this run only: a person's redrive starts to count anew. What still stands as running never reported back.
    SELECT count(*) FILTER (WHERE outcome IN ('crashed', 'running')
                               OR (outcome = 'failed' AND category NOT IN ('rate_limited', 'bad_output')))::integer
               AS counted,
           count(*) FILTER (WHERE category = 'rate_limited')::integer AS rate_limited,
           count(*) FILTER (WHERE category = 'bad_output')::integer AS malformed
      FROM attempts WHERE job_id = :job_id AND effect_key = :key AND run_id = :run_id::text
), approval AS (
    -- A person's word on just this call, given in time; or, of an attempt after the first one, used by this step before.
    SELECT effect_key, number FROM approvals
     WHERE :needs_approval::boolean AND effect_key = :key AND fingerprint = :fingerprint::text
       AND number = (SELECT max(number) FROM approvals WHERE effect_key = :key)
       AND (state = 'used' OR (state = 'approved' AND expires_at > now()))
), verdict AS (
    SELECT CASE
        WHEN state NOT IN ('pending', 'running', 'retry_wait', 'waiting_approval')
             AND NOT (:kind::text = 'undo' AND state = 'dead') THEN 'not_live'
        WHEN EXISTS (SELECT FROM workers WHERE id = :worker::text AND lost_at IS NOT NULL) THEN 'fenced'
        WHEN cancel_requested_at IS NOT NULL AND :kind::text <> 'undo' THEN 'cancel_requested'
        WHEN EXISTS (SELECT FROM recorded WHERE recorded.state IN ('completed', 'undone')) THEN 'go'
        WHEN (SELECT counted FROM tried) >= :attempt_limit::integer THEN 'retries_exhausted'
        WHEN :grant::text IS NOT NULL AND NOT EXISTS (
             SELECT FROM grants g
              WHERE g.tenant = before.tenant AND g."user" = before."user" AND g.action = :grant::text)
             THEN 'access_denied'
        WHEN :needs_approval::boolean AND NOT EXISTS (SELECT FROM approval) THEN 'not_approved'
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
           state = CASE WHEN effects.state = 'released' THEN 'begun' ELSE effects.state END,
           fingerprint = excluded.fingerprint
     WHERE effects.fingerprint IN (excluded.fingerprint, '') -- open again after a corrected input
    RETURNING key, state, in_doubt, result, sent_at, generation, response_id, response_model
), used AS (
    UPDATE approvals SET state = 'used', used_at = now()
      FROM effect CROSS JOIN approval
     WHERE approvals.effect_key = approval.effect_key AND approvals.number = approval.number
       AND approvals.state = 'approved'
), crashed AS (
    UPDATE attempts SET outcome = 'crashed', finished_at = now()
      FROM effect WHERE attempts.effect_key = effect.key AND attempts.outcome = 'running'
), limits AS (
    SELECT tenants.id, monthly_tokens, monthly_usd FROM before JOIN tenants ON tenants.id = before.tenant
     WHERE :kind::text = 'model' AND (monthly_tokens IS NOT NULL OR monthly_usd IS NOT NULL)
), month AS (
    -- One row that all calls of the tenant wait for: so only for tenants with a budget, and only for calls that cost.
    INSERT INTO tenant_months AS months (tenant, month, tokens_reserved, usd_reserved)
    SELECT limits.id, date_trunc('month', now() AT TIME ZONE 'UTC')::date, :reserve_tokens::bigint,
           :reserve_usd::numeric
      FROM effect CROSS JOIN limits
     WHERE effect.state = 'begun' AND coalesce(:reserve_tokens::bigint <= monthly_tokens, true)
       AND coalesce(:reserve_usd::numeric <= monthly_usd, true)
    ON CONFLICT (tenant, month) DO UPDATE
       SET tokens_reserved = months.tokens_reserved + excluded.tokens_reserved,
           usd_reserved = months.usd_reserved + excluded.usd_reserved
     WHERE coalesce(months.tokens + months.tokens_reserved + excluded.tokens_reserved
                    <= (SELECT monthly_tokens FROM limits), true)
       AND coalesce(months.usd + months.usd_reserved + excluded.usd_reserved
                    <= (SELECT monthly_usd FROM limits), true)
    RETURNING month
), over AS (
    -- (Its effect stays begun, without an attempt. It is a model call, and of those none is ever in doubt.)
    SELECT true FROM effect CROSS JOIN limits WHERE effect.state = 'begun' AND NOT EXISTS (SELECT FROM month)
), started AS (
    INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, tokens_reserved, usd_reserved, budget_month)
    SELECT :job_id::text, :step::text, key, :run_id::text, :attempt::integer, :worker::text,
           :reserve_tokens::bigint, :reserve_usd::numeric, (SELECT month FROM month)
      FROM effect WHERE state = 'begun' AND NOT EXISTS (SELECT FROM over)
    RETURNING id
), refused AS (
    INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, outcome, category, message, finished_at)
    SELECT :job_id::text, :step::text, :key::text, :run_id::text, :attempt::integer, :worker::text, 'failed',
           CASE WHEN EXISTS (SELECT FROM over) THEN 'budget_exceeded' WHEN verdict = 'go' THEN 'key_conflict'
                WHEN verdict = 'not_approved' THEN 'access_denied' ELSE verdict END,
           'refused before it began'
               || CASE verdict WHEN 'access_denied' THEN ': no grant for ' || :grant::text
                               WHEN 'not_approved' THEN ': no approval of this call' ELSE '' END,
           now()
      FROM verdict
     WHERE verdict IN ('access_denied', 'not_approved', 'deadline_exceeded', 'budget_exceeded')
        OR (verdict = 'go' AND (NOT EXISTS (SELECT FROM effect) OR EXISTS (SELECT FROM over)))
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
           event_seq = jobs.event_seq + (before.state IN ('pending', 'retry_wait') OR :attempt::integer > 1)::integer
      FROM before, effect
     WHERE jobs.id = before.id AND NOT EXISTS (SELECT FROM over)
    RETURNING jobs.id, jobs.event_seq, before.state AS previous
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT id, event_seq, CASE previous WHEN 'pending' THEN 'started' ELSE 'attempt_started' END,
           jsonb_build_object('step', :step::text, 'attempt', :attempt::integer,
                              'attempt_id', (SELECT id FROM started))
      FROM job WHERE previous IN ('pending', 'retry_wait') OR :attempt::integer > 1
)
SELECT CASE WHEN EXISTS (SELECT FROM over) THEN 'tenant_budget_exceeded' ELSE verdict.verdict END AS verdict,
       before.state AS job_state, before.tenant, before."user", before.agent,
       before.policy_version, before.input, before.deadline_at, (before.deadline_at - now()) AS remaining,
       effect.state AS effect_state, effect.in_doubt, effect.result,
       effect.sent_at, (now() - effect.sent_at) AS since_sent, effect.generation, effect.response_id, effect.response_model,
       before.budget_tokens, before.budget_usd, before.tokens_in + before.tokens_out + before.tokens_reserved AS tokens_used,
       before.usd + before.usd_reserved AS usd_used, before.trace_id,
       limits.monthly_tokens, limits.monthly_usd, coalesce(months.tokens + months.tokens_reserved, 0) AS month_tokens,
       coalesce(months.usd + months.usd_reserved, 0) AS month_usd,
       tried.counted, tried.rate_limited, tried.malformed,
       CASE WHEN :kind::text = 'model' THEN (
           SELECT jsonb_agg(jsonb_build_object('model', model, 'category', category, 'message', message) ORDER BY id)
             FROM (SELECT id, model, category, message FROM attempts
                    WHERE job_id = :job_id AND effect_key = :key AND run_id = :run_id::text AND outcome = 'failed'
                    ORDER BY id DESC LIMIT 10) AS latest) END AS failures,
       recorded.fingerprint AS recorded_fingerprint, started.id AS attempt_id,
       CASE WHEN :with_done::boolean THEN (
           SELECT coalesce(jsonb_agg(jsonb_build_object('step', e.step, 'kind', e.kind, 'name', e.name,
                                                        'result', e.result) ORDER BY e.begun_at, e.key), '[]')
             FROM effects e
            WHERE e.job_id = :job_id AND e.state = 'completed'
              AND position('~' IN e.step) = 0 -- what was set aside when the input was corrected is no step any more
           ) END AS done
  FROM before CROSS JOIN verdict CROSS JOIN tried
  LEFT JOIN limits ON true
  LEFT JOIN tenant_months AS months
    ON months.tenant = limits.id AND months.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
  LEFT JOIN effect ON true LEFT JOIN started ON true LEFT JOIN recorded ON true;

-- name: send_again^
-- The doubt is resolved: the earlier call had no effect, and cannot have it any more. From here on this one may. No row
-- comes back when the effect is no longer as it was looked up: sent again by another attempt, completed, or given up.
UPDATE effects SET sent_at = now() WHERE key = :key AND state = 'begun' AND sent_at = :sent_at RETURNING key;

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
       -- An attempt that was made of an input that was corrected since answers for nothing.
       AND fingerprint = :fingerprint::text
       AND EXISTS (SELECT FROM attempts WHERE attempts.id = :attempt_id AND attempts.effect_key = effects.key)
       AND (effect_class = 'read_only' OR NOT EXISTS (
            SELECT FROM workers WHERE workers.id = :worker::text AND lost_at IS NOT NULL))
    RETURNING job_id, step, kind, name
), undone AS (
    UPDATE effects SET state = 'undone'
     WHERE key = :undone_key::text AND state = 'completed' AND EXISTS (SELECT FROM completed)
), held AS MATERIALIZED (
    SELECT attempts.id, attempts.job_id, attempts.tokens_reserved, attempts.usd_reserved, attempts.budget_month
      FROM locked JOIN attempts ON attempts.job_id = locked.id
     WHERE attempts.id = :attempt_id AND (SELECT count(*) FROM completed) >= 0 -- after the effect
       FOR UPDATE OF attempts
), settled AS (
    UPDATE attempts
       SET outcome = 'succeeded', finished_at = now(), model = coalesce(:model::text, attempts.model),
           tokens_reserved = 0,
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
    RETURNING jobs.id, jobs.tenant, jobs.event_seq, jobs.finalized_at
), month AS (
    UPDATE tenant_months AS months
       SET tokens = months.tokens + :tokens_in::bigint + :tokens_out::bigint, usd = months.usd + :usd::numeric,
           tokens_reserved = months.tokens_reserved
               - CASE WHEN held.budget_month IS NULL THEN 0 ELSE held.tokens_reserved END,
           usd_reserved = months.usd_reserved - CASE WHEN held.budget_month IS NULL THEN 0 ELSE held.usd_reserved END
      FROM held CROSS JOIN job
     WHERE months.tenant = job.tenant AND :costs::boolean
       AND months.month = coalesce(held.budget_month, date_trunc('month', now() AT TIME ZONE 'UTC')::date)
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT job.id, job.event_seq, 'step_completed',
           jsonb_build_object('step', completed.step, 'kind', completed.kind, 'name', completed.name)
      FROM job CROSS JOIN completed WHERE job.finalized_at IS NULL
)
SELECT EXISTS (SELECT FROM completed) AS completed;

-- name: close_to_steps!
-- Before an undo looks: from here on no step of its job begins. (A cancel in Temporal is not in the ledger yet. An attempt
-- that comes late would do what the undo has not found.)
UPDATE jobs SET cancel_requested_at = now(), updated_at = now()
 WHERE id = :job_id AND cancel_requested_at IS NULL
   AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval');

-- name: effects_to_undo
-- Of tools, those that are there or may be.
SELECT step, name FROM effects
 WHERE job_id = :job_id AND kind = 'tool' AND state IN ('begun', 'completed')
   AND position('~' IN step) = 0 -- what was set aside when the input was corrected is no step any more
 ORDER BY begun_at, key;

-- name: abandon_effect!
-- Before an undo: what certainly was not done can no longer be done by a late attempt. (The row lock makes
-- this wait for a transaction that is about to complete it, and then leave it alone.)
UPDATE effects SET state = 'abandoned', in_doubt = false
 WHERE key = :key AND (state = 'released' OR (state = 'begun' AND effect_class IN ('transactional', 'read_only')));

-- name: adopt_effect!
-- The destination was asked, and has it. (One without a fingerprint is of a job whose content was removed meanwhile.)
UPDATE effects SET state = 'completed', in_doubt = false, result = :result::jsonb, completed_at = now()
 WHERE key = :key AND state = 'begun' AND fingerprint <> '';

-- name: give_up_effect^
-- The destination was asked: it has it not, and the call cannot land any more. No row comes back when the effect is no
-- longer as it was when that was asked.
UPDATE effects SET state = 'abandoned', in_doubt = false
 WHERE key = :key AND state = 'begun' AND sent_at = :sent_at RETURNING key;

-- name: read_effect^
SELECT *, (now() - sent_at) AS since_sent FROM effects WHERE key = :key;

-- name: effects_of_job
SELECT *, (now() - sent_at) AS since_sent FROM effects WHERE job_id = :job_id ORDER BY begun_at, key;

-- name: fail_attempt^
-- A failed try. `release` says that the call certainly had no effect; `settle`, that its cost is known (nothing, or what is
-- given): otherwise the effect stays in doubt, and its reservation stays held. `wait_seconds` is NULL when no attempt
-- follows.
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
           next_attempt_at = now() + make_interval(secs => :wait_seconds::double precision),
           tokens_in = :tokens_in::bigint, tokens_out = :tokens_out::bigint, usd = :usd::numeric,
           tokens_reserved = CASE WHEN :settle::boolean THEN 0 ELSE attempts.tokens_reserved END,
           usd_reserved = CASE WHEN :settle::boolean THEN 0 ELSE attempts.usd_reserved END
      FROM effect JOIN attempts AS held ON held.id = :attempt_id
     WHERE attempts.id = :attempt_id AND attempts.effect_key = effect.key AND attempts.outcome = 'running'
    RETURNING attempts.id, attempts.job_id, attempts.effect_key, attempts.step, attempts.attempt,
              attempts.next_attempt_at, attempts.budget_month,
              CASE WHEN :settle::boolean THEN held.tokens_reserved ELSE 0 END AS tokens_released,
              CASE WHEN :settle::boolean THEN held.usd_reserved ELSE 0 END AS usd_released
), known AS (
    -- What this attempt certainly did not do, an earlier one may have done all the same. An answer that was of no use is
    -- not to be fetched again.
    UPDATE effects
       SET state = CASE WHEN released THEN 'released' ELSE effects.state END,
           in_doubt = effects.in_doubt AND NOT released,
           response_id = CASE WHEN useless THEN NULL ELSE response_id END,
           response_model = CASE WHEN useless THEN NULL ELSE response_model END
      FROM (SELECT failed.effect_key, :category::text IN ('bad_output', 'content_refused') AS useless,
                   :release::boolean AND (NOT held.in_doubt OR held.effect_class IN ('transactional', 'read_only'))
                   AS released
              FROM failed JOIN effects AS held ON held.key = failed.effect_key) AS found
     WHERE effects.key = found.effect_key AND effects.state = 'begun' AND (released OR useless)
), job AS (
    UPDATE jobs
       SET state = CASE WHEN failed.next_attempt_at IS NOT NULL AND jobs.state = 'running'
                        THEN 'retry_wait' ELSE jobs.state END,
           next_attempt_at = CASE WHEN jobs.state = 'running' THEN failed.next_attempt_at
                                  ELSE jobs.next_attempt_at END,
           failure = CASE WHEN jobs.state = 'dead' THEN jobs.failure ELSE :failure::jsonb END,
           tokens_in = jobs.tokens_in + :tokens_in::bigint, tokens_out = jobs.tokens_out + :tokens_out::bigint,
           usd = jobs.usd + :usd::numeric, tokens_reserved = jobs.tokens_reserved - failed.tokens_released,
           usd_reserved = jobs.usd_reserved - failed.usd_released,
           updated_at = now(), event_seq = jobs.event_seq + (failed.next_attempt_at IS NOT NULL)::integer
      FROM failed WHERE jobs.id = failed.job_id
    RETURNING jobs.id, jobs.tenant, jobs.event_seq
), month AS (
    UPDATE tenant_months AS months
       SET tokens = months.tokens + :tokens_in::bigint + :tokens_out::bigint, usd = months.usd + :usd::numeric,
           tokens_reserved = months.tokens_reserved
               - CASE WHEN failed.budget_month IS NULL THEN 0 ELSE failed.tokens_released END,
           usd_reserved = months.usd_reserved
               - CASE WHEN failed.budget_month IS NULL THEN 0 ELSE failed.usd_released END
      FROM failed CROSS JOIN job
     WHERE months.tenant = job.tenant AND :settle::boolean
       AND months.month = coalesce(failed.budget_month, date_trunc('month', now() AT TIME ZONE 'UTC')::date)
)
INSERT INTO job_events (job_id, seq, type, data)
SELECT job.id, job.event_seq, 'retry_scheduled',
       jsonb_build_object('step', failed.step, 'attempt', failed.attempt, 'attempt_id', failed.id,
                          'category', :category::text, 'next_attempt_at', failed.next_attempt_at)
  FROM job CROSS JOIN failed WHERE failed.next_attempt_at IS NOT NULL
RETURNING seq;

-- name: abandon_attempt!
-- Cut off on purpose: by a cancel, or by its worker's stop. What it did, if anything, stays in doubt.
UPDATE attempts SET outcome = 'abandoned', finished_at = now() WHERE id = :attempt_id AND outcome = 'running';

-- name: remember_response^
-- Where the provider writes this step's answer: durable before anybody waits for it. Only for an attempt that still counts.
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = (SELECT job_id FROM attempts WHERE id = :attempt_id) FOR NO KEY UPDATE
), attempt AS MATERIALIZED (
    SELECT attempts.job_id, attempts.effect_key
      FROM locked JOIN attempts ON attempts.job_id = locked.id
     WHERE attempts.id = :attempt_id AND outcome = 'running' FOR NO KEY UPDATE OF attempts
)
UPDATE effects SET response_id = :response_id, response_model = :model
  FROM attempt
 WHERE effects.job_id = attempt.job_id AND effects.key = attempt.effect_key AND effects.state = 'begun'
RETURNING effects.key;

-- name: write_text!
-- A piece of an answer as it is written, under its attempt: a reader drops the text of an attempt that failed.
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = :job_id AND finalized_at IS NULL FOR NO KEY UPDATE
), attempt AS MATERIALIZED (
    SELECT attempts.job_id FROM locked JOIN attempts ON attempts.job_id = locked.id
     WHERE attempts.id = :attempt_id AND outcome = 'running' FOR NO KEY UPDATE OF attempts
), job AS (
    UPDATE jobs SET event_seq = event_seq + 1 FROM attempt WHERE jobs.id = attempt.job_id
    RETURNING jobs.id, jobs.event_seq
)
INSERT INTO job_events (job_id, seq, type, data)
SELECT id, event_seq, 'text',
       jsonb_build_object('step', :step::text, 'attempt', :attempt::integer, 'attempt_id', :attempt_id::bigint,
                          'text', :text::text)
  FROM job;
