-- name: only_one_starter$
-- The lane of starts is taken by one relay at a time, so that a tenant's cap is exact; others stand by.
-- The lock ends with the transaction, also when its relay dies.
SELECT pg_try_advisory_xact_lock(hashtext('agentjobs.outbox.starts'));

-- name: claim_starts
-- Round robin over the tenants that have something waiting (found by skipping from tenant to tenant along
-- the index, not by reading the backlog), each up to the room under its running cap.
WITH RECURSIVE waiting (tenant) AS (
    (SELECT tenant FROM outbox WHERE topic = 'start_job' ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant FROM outbox o WHERE o.topic = 'start_job' AND o.tenant > waiting.tenant
             ORDER BY o.tenant LIMIT 1)
      FROM waiting WHERE waiting.tenant IS NOT NULL
), room AS (
    SELECT waiting.tenant, tenants.running_cap - (
               SELECT count(*) FROM jobs
                WHERE jobs.tenant = waiting.tenant AND dispatched_at IS NOT NULL
                  AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')) AS free
      FROM waiting JOIN tenants ON tenants.id = waiting.tenant
), ranked AS (
    SELECT next.id, row_number() OVER (PARTITION BY room.tenant ORDER BY next.priority, next.id) AS turn
      FROM room CROSS JOIN LATERAL (
           SELECT id, priority FROM outbox
            WHERE topic = 'start_job' AND tenant = room.tenant AND available_at <= now()
            ORDER BY priority, id LIMIT least(greatest(room.free, 0), :batch::integer)) next
)
SELECT outbox.id, outbox.job_id, outbox.tenant, outbox.attempts, jobs.agent, jobs.policy_version,
       jobs.deadline_at, jobs.priority, jobs.state, jobs.generation, jobs.budget_steps,
       jobs.cancel_requested_at IS NOT NULL AS cancelling, outbox.created_at, outbox.traceparent,
       jobs.trace_id, jobs.trace_parent, jobs.trace_sampled
  FROM outbox JOIN jobs ON jobs.id = outbox.job_id
 WHERE outbox.id IN (SELECT id FROM ranked ORDER BY turn, id LIMIT :batch::integer)
 ORDER BY outbox.id
   FOR UPDATE OF outbox SKIP LOCKED;

-- name: mark_started!
WITH gone AS (
    DELETE FROM outbox WHERE id = ANY (:ids::bigint[]) RETURNING job_id
)
UPDATE jobs SET dispatched_at = coalesce(dispatched_at, now()) FROM gone WHERE jobs.id = gone.job_id;

-- name: claim_commands
SELECT outbox.id, outbox.topic, outbox.job_id, outbox.tenant, outbox.payload, outbox.attempts,
       jobs.agent, jobs.policy_version, jobs.deadline_at, jobs.priority, jobs.state, jobs.generation,
       jobs.budget_steps,
       jobs.cancel_requested_at IS NOT NULL AS cancelling, outbox.created_at, outbox.traceparent,
       jobs.trace_id, jobs.trace_parent, jobs.trace_sampled
  FROM outbox JOIN jobs ON jobs.id = outbox.job_id
 WHERE topic NOT IN ('start_job', 'job_died', 'approval_requested') AND available_at <= now()
 ORDER BY outbox.id LIMIT :batch
   FOR UPDATE OF outbox SKIP LOCKED;

-- name: claim_desk_words
SELECT outbox.id, outbox.topic, outbox.job_id, outbox.tenant, outbox.payload, outbox.attempts,
       jobs.agent, jobs.policy_version, jobs.deadline_at, jobs.priority, jobs.state, jobs.generation,
       jobs.budget_steps,
       jobs.cancel_requested_at IS NOT NULL AS cancelling, outbox.created_at, outbox.traceparent,
       jobs.trace_id, jobs.trace_parent, jobs.trace_sampled
  FROM outbox JOIN jobs ON jobs.id = outbox.job_id
 WHERE topic IN ('job_died', 'approval_requested') AND available_at <= now()
 ORDER BY outbox.id LIMIT :batch
   FOR UPDATE OF outbox SKIP LOCKED;

-- name: mark_delivered!
DELETE FROM outbox WHERE id = ANY (:ids::bigint[]);

-- name: postpone!
UPDATE outbox
   SET attempts = attempts + 1, last_error = :error,
       available_at = now() + make_interval(secs => :wait_seconds::double precision)
 WHERE id = :id;

-- name: backlog^
SELECT count(*) AS rows, extract(epoch FROM now() - min(created_at))::double precision AS oldest_seconds
  FROM outbox;
