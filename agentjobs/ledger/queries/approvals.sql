-- name: ask_approval^
-- Where the wanted call stands: its request, made now if there is none that holds. The job waits as long as it is open.
-- (Run under the job's lock: see lock_job.)
WITH job AS (
    SELECT * FROM jobs WHERE id = :job_id
), latest AS (
    SELECT * FROM approvals WHERE effect_key = :key ORDER BY number DESC LIMIT 1
), held AS (
    SELECT latest.number,
           CASE WHEN latest.state = 'used' THEN 'used'
                WHEN latest.state IN ('requested', 'approved', 'expired') AND latest.expires_at <= now() THEN 'expired'
                ELSE latest.state END AS state
      FROM latest CROSS JOIN job
     WHERE latest.fingerprint = :fingerprint
       -- What was refused, or came too late, is asked anew after a redrive.
       AND (latest.generation = job.generation OR latest.state = 'used'
            OR (latest.state IN ('requested', 'approved') AND latest.expires_at > now()))
), asked AS (
    INSERT INTO approvals (effect_key, number, job_id, tenant, generation, step, tool, fingerprint, expires_at)
    SELECT :key, coalesce((SELECT number FROM latest), 0) + 1, job.id, job.tenant, job.generation, :step, :tool, :fingerprint,
           least(now() + make_interval(secs => :seconds::double precision), job.deadline_at)
      FROM job
     WHERE NOT EXISTS (SELECT FROM held) AND job.cancel_requested_at IS NULL
       AND job.state IN ('running', 'waiting_approval')
    RETURNING *
), expired AS (
    UPDATE approvals SET state = 'expired'
      FROM latest
     WHERE approvals.effect_key = latest.effect_key AND approvals.number = latest.number
       AND latest.state IN ('requested', 'approved') AND latest.expires_at <= now()
    RETURNING approvals.step
), now_is AS (
    SELECT coalesce((SELECT 'requested' FROM asked), (SELECT state FROM held)) AS state
), moved AS (
    UPDATE jobs
       SET state = CASE now_is.state WHEN 'requested' THEN 'waiting_approval' ELSE 'running' END,
           step = :step, updated_at = now(),
           event_seq = jobs.event_seq + (SELECT count(*) FROM asked) + (SELECT count(*) FROM expired)
      FROM now_is, job
     WHERE jobs.id = job.id AND job.state IN ('running', 'waiting_approval') AND job.cancel_requested_at IS NULL
       AND (now_is.state IN ('requested', 'approved', 'used') OR EXISTS (SELECT FROM expired))
    RETURNING jobs.id, jobs.event_seq
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT moved.id, moved.event_seq - (SELECT count(*) FROM asked), 'approval_expired',
           jsonb_build_object('step', expired.step)
      FROM moved CROSS JOIN expired
     UNION ALL
    SELECT moved.id, moved.event_seq, 'approval_requested',
           jsonb_build_object('step', asked.step, 'tool', asked.tool, 'expires_at', asked.expires_at)
      FROM moved CROSS JOIN asked
), queued AS ( -- for the desk, which sees to it that a reviewer hears of it
    INSERT INTO outbox (topic, job_id, tenant) SELECT 'approval_requested', job_id, tenant FROM asked
    RETURNING id
)
SELECT (SELECT pg_notify('agentjobs_outbox', '') FROM queued), job.state AS job_state, job.cancel_requested_at IS NOT NULL AS cancelling, now_is.state,
       coalesce(asked.expires_at, latest.expires_at) AS expires_at
  FROM job CROSS JOIN now_is LEFT JOIN asked ON true LEFT JOIN latest ON true;

-- name: decide_approval^
-- A person's word on an open request; the first one holds. (Run under the job's lock: see lock_job.)
WITH latest AS (
    SELECT approvals.*, jobs.state AS job_state, jobs.cancel_requested_at
      FROM approvals JOIN jobs ON jobs.id = approvals.job_id
     WHERE approvals.job_id = :job_id AND approvals.tenant = :tenant AND approvals.step = :step
     ORDER BY number DESC LIMIT 1
), decided AS (
    UPDATE approvals SET state = :decision, decided_at = now(), decided_by = :actor, note = :note
      FROM latest
     WHERE approvals.effect_key = latest.effect_key AND approvals.number = latest.number
       AND latest.state = 'requested' AND latest.expires_at > now()
       AND latest.job_state = 'waiting_approval' AND latest.cancel_requested_at IS NULL
       AND coalesce(latest.fingerprint = :fingerprint, true)
    RETURNING approvals.*
), job AS (
    UPDATE jobs SET event_seq = jobs.event_seq + 1, updated_at = now() FROM decided WHERE jobs.id = decided.job_id
    RETURNING jobs.id, jobs.event_seq
), event AS (
    INSERT INTO job_events (job_id, seq, type, data)
    SELECT job.id, job.event_seq, 'approval_decided',
           jsonb_build_object('step', decided.step, 'tool', decided.tool, 'decision', decided.state)
      FROM job CROSS JOIN decided
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, note, details)
    SELECT tenant, :actor, CASE state WHEN 'approved' THEN 'approve' ELSE 'reject' END, job_id, note,
           jsonb_build_object('step', step, 'tool', tool, 'fingerprint', fingerprint)
      FROM decided
), queued AS (
    INSERT INTO outbox (topic, job_id, tenant, payload)
    SELECT 'approval_decided', job_id, tenant, jsonb_build_object('step', step, 'fingerprint', fingerprint, 'decision', state)
      FROM decided
    RETURNING id
)
SELECT latest.state AS state_before, latest.decided_by AS decided_by_before, latest.fingerprint,
       latest.expires_at <= now() AS is_late,
       latest.job_state <> 'waiting_approval' OR latest.cancel_requested_at IS NOT NULL AS is_over,
       EXISTS (SELECT FROM decided) AS is_decided, (SELECT pg_notify('agentjobs_outbox', '') FROM queued)
  FROM latest;

-- name: approvals_of_job
-- What was and is asked for a job, oldest first. The arguments are those of the model's reply that wants the call; NULL where
-- that reply is no longer the job's.
SELECT approvals.*, effects.result -> 'decision' -> 'arguments' AS arguments,
       CASE WHEN approvals.state <> 'requested' THEN approvals.state
            WHEN jobs.state <> 'waiting_approval' OR jobs.cancel_requested_at IS NOT NULL THEN 'withdrawn'
            WHEN approvals.expires_at <= now() THEN 'expired'
            ELSE 'requested' END AS stands
  FROM approvals
  JOIN jobs ON jobs.id = approvals.job_id
  LEFT JOIN effects ON effects.job_id = approvals.job_id AND effects.kind = 'model'
                   AND effects.step = split_part(approvals.step, '.', 1) || '.model'
 WHERE approvals.job_id = :job_id AND approvals.tenant = :tenant
 ORDER BY approvals.requested_at, approvals.step, approvals.number;

-- name: open_approvals
-- What waits for a reviewer of the tenant, longest waiting first.
SELECT approvals.*, effects.result -> 'decision' -> 'arguments' AS arguments, approvals.state AS stands
  FROM approvals
  JOIN jobs ON jobs.id = approvals.job_id
  LEFT JOIN effects ON effects.job_id = approvals.job_id AND effects.kind = 'model'
                   AND effects.step = split_part(approvals.step, '.', 1) || '.model'
 WHERE approvals.tenant = :tenant AND approvals.state = 'requested' AND approvals.expires_at > now()
   AND jobs.state = 'waiting_approval' AND jobs.cancel_requested_at IS NULL
   AND (:after_at::timestamptz IS NULL
        OR (approvals.requested_at, approvals.job_id) > (:after_at::timestamptz, :after_id::text))
 ORDER BY approvals.requested_at, approvals.job_id LIMIT :limit;
