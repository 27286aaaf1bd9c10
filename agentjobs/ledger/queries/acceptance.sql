-- name: accept_job^
-- One statement, so one round trip and all or nothing: key, quotas, job, first event, outbox row. No row comes back
-- when the key is already there (a concurrent twin waits here for the first one's commit), and no quota is asked. At a
-- limit a row without a job comes back, and nothing of it stays.
--
-- A transaction that notifies holds one lock of the whole server while its commit reaches the disk. So of acceptances
-- that commit at the same time one notifies, the one that holds (24939, 2), and the relay looks again a little later
-- (outbox/relay.py). `alone`: this is no part of a caller's own transaction; there the lock would be held for as long as
-- that goes on, and meanwhile nobody would notify.
WITH asked AS MATERIALIZED (
    SELECT refused, at_most, in_use, wait_seconds, quotas
      FROM admit(:tenant::text, :user::text, :key::text, :fingerprint::text, :id::text, :budget_tokens::bigint,
                 :budget_usd::numeric, :budget_steps::integer, :in_flight::integer, :per_minute::integer,
                 :queue_length::integer)
), accepted AS (
    INSERT INTO jobs (id, tenant, "user", agent, policy_version, origin, input, priority,
                      budget_tokens, budget_usd, budget_steps, deadline_seconds, deadline_at, created_at, updated_at,
                      trace_id, trace_parent, trace_sampled, event_seq)
    SELECT :id::text, :tenant::text, :user::text, :agent::text, :policy_version::text, :origin::text,
           :input::text::jsonb, :priority::smallint, :budget_tokens::bigint, :budget_usd::numeric,
           :budget_steps::integer, :deadline_seconds::integer,
           -- Not now(): within a caller's own transaction that may be long ago.
           statement_timestamp() + make_interval(secs => :deadline_seconds::integer), statement_timestamp(),
           statement_timestamp(), :trace_id::text, :trace_parent::text, :trace_sampled::boolean, 1
      FROM asked WHERE refused IS NULL
    -- No more than the answer needs: of all else the caller knows what it is, and the text may be long.
    RETURNING id, tenant, "user", agent, policy_version, priority, budget_tokens, budget_usd, budget_steps,
              deadline_at, created_at, trace_id, event_seq
), event AS (
    INSERT INTO job_events (job_id, seq, type) SELECT id, event_seq, 'accepted' FROM accepted
), queued AS (
    INSERT INTO outbox (topic, job_id, tenant, priority)
    SELECT 'start_job', id, tenant, priority FROM accepted
)
SELECT accepted.*, asked.refused, asked.at_most, asked.in_use, asked.wait_seconds, asked.quotas,
       CASE WHEN accepted.id IS NOT NULL AND (NOT :alone::boolean OR pg_try_advisory_xact_lock(24939, 2))
            THEN pg_notify('agentjobs_outbox', '') END
  FROM asked LEFT JOIN accepted ON true;

-- name: find_by_key^
-- The job that a used idempotency key belongs to, with the fingerprint of the request that used it first, and the
-- limits that it was accepted with (they hide the job's own, which may have been raised).
SELECT jobs.*, idempotency_keys.fingerprint,
       idempotency_keys.budget_tokens, idempotency_keys.budget_usd, idempotency_keys.budget_steps,
       jsonb_path_query_array(
           quota_uses(:tenant, :user, :in_flight::integer, :per_minute::integer, :queue_length::integer),
           '$[*] ? (@.limit != null)') AS quotas
  FROM idempotency_keys JOIN jobs ON jobs.id = idempotency_keys.job_id
 WHERE idempotency_keys.tenant = :tenant AND idempotency_keys."user" = :user
   AND operation = 'submit' AND key = :key;

-- name: request_cancel^
-- A pending job is cancelled here and now: nothing has begun, and `begin_effect` refuses from now on. Of any
-- other live job the wish is recorded (the next step does not begin) and the relay tells the workflow.
WITH before AS (
    SELECT id, state, cancel_requested_at FROM jobs
     WHERE id = :id AND tenant = :tenant AND (:user::text IS NULL OR "user" = :user)
       FOR NO KEY UPDATE
), asked AS (
    UPDATE jobs
       SET cancel_requested_at = now(), updated_at = now(), event_seq = jobs.event_seq + 1,
           state = CASE WHEN before.state = 'pending' THEN 'cancelled' ELSE jobs.state END,
           finalized_at = CASE WHEN before.state = 'pending' THEN now() END
      FROM before
     WHERE jobs.id = before.id AND before.cancel_requested_at IS NULL
       AND before.state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
    RETURNING jobs.*
), event AS (
    INSERT INTO job_events (job_id, seq, type)
    SELECT id, event_seq, CASE WHEN state = 'cancelled' THEN 'cancelled' ELSE 'cancel_requested' END FROM asked
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target) SELECT tenant, :actor, 'cancel', id FROM asked
), queued AS (
    INSERT INTO outbox (topic, job_id, tenant)
    SELECT 'cancel_job', id, tenant FROM asked WHERE state <> 'cancelled'
    RETURNING id
)
SELECT coalesce(asked.state, before.state) AS state,
       (SELECT pg_notify('agentjobs_outbox', '') FROM queued),
       (SELECT pg_notify('agentjobs_cancelled', :id) FROM queued)
  FROM before LEFT JOIN asked ON true;
