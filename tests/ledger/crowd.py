"""A ledger that is full: rows by the thousand, made by the server itself."""

from agentjobs.ledger.ledger import Ledger

GROWING = frozenset(
    {
        "jobs",
        "effects",
        "attempts",
        "job_events",
        "idempotency_keys",
        "outbox",
        "dead_letters",
        "deaths",
        "tickets",
        "audit_log",
        "webhook_deliveries",
    }
)
"""The tables that get rows with every job, death or deed."""

# As a replica the server looks at no foreign key and runs no trigger of ours: only the rows matter here. Every
# fifth job is under way, every fifth died.
_FILL = """
SET LOCAL session_replication_role = replica;
INSERT INTO jobs (id, tenant, "user", agent, policy_version, origin, input, priority, deadline_seconds,
                  deadline_at, state, previous_state, dispatched_at, finalized_at, result, failure, generation,
                  created_at, event_seq)
SELECT 'old-' || i, 'tenant-' || i % 50, 'user-' || i % 500, 'support-triage', '1', 'crowd',
       '{"text": "My printer is on fire"}',
       3, 3600, now() + interval '1 day', kind.state, kind.before, now() - interval '2 days',
       CASE kind.state WHEN 'succeeded' THEN now() - interval '2 days' END, '{}',
       CASE kind.state WHEN 'dead' THEN '{"category": "bug"}'::jsonb END, (kind.state = 'dead')::integer,
       now() - interval '3 days' + i * interval '1 second', 3
  FROM generate_series(1, $jobs) AS i
 CROSS JOIN LATERAL (SELECT CASE i % 5 WHEN 0 THEN 'running' WHEN 1 THEN 'dead' ELSE 'succeeded' END AS state,
                            CASE i % 5 WHEN 0 THEN 'pending' ELSE 'running' END AS before) AS kind;
INSERT INTO effects (key, job_id, step, kind, name, effect_class, fingerprint, state, result, completed_at)
SELECT 'old-' || i || '/' || step, 'old-' || i, 'step-' || step, 'model', 'model', 'read_only', repeat('f', 64),
       'completed', '{"text": "an answer"}', now()
  FROM generate_series(1, $jobs) AS i CROSS JOIN generate_series(1, 2) AS step;
INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, outcome, finished_at, model)
SELECT job_id, step, key, 'run', 1, 'worker-' || length(key) % 9, 'succeeded', now(), 'model' FROM effects
 WHERE job_id LIKE 'old-%';
INSERT INTO job_events (job_id, seq, type)
SELECT 'old-' || i, seq, 'step_completed'
  FROM generate_series(1, $jobs) AS i CROSS JOIN generate_series(1, 3) AS seq;
INSERT INTO idempotency_keys (tenant, "user", operation, key, fingerprint, job_id)
SELECT tenant, "user", 'submit', id, repeat('f', 64), id FROM jobs WHERE id LIKE 'old-%';
INSERT INTO dead_letters (id, tenant, generation, state, category, reason, message, agent, policy_version, worker,
                          origin, submitted_by, review_id, attempts, effects_done, effects_in_doubt)
SELECT id, tenant, 1, 'open', 'bug', 'bug', 'x', agent, policy_version, 'w', origin, "user", id, 1, '[]', '[]'
  FROM jobs WHERE id LIKE 'old-%' AND state = 'dead';
INSERT INTO deaths (job_id, generation, tenant, agent, policy_version, category, reason, worker)
SELECT id, 1, tenant, agent, policy_version, 'bug', 'bug', 'w' FROM jobs WHERE id LIKE 'old-%' AND state = 'dead';
INSERT INTO outbox (topic, job_id, tenant)
SELECT 'start_job', id, tenant FROM jobs WHERE id LIKE 'old-%' AND state = 'running';
INSERT INTO tickets (tenant, operation_key, job_id, subject, body, category, urgency, language)
SELECT 'tenant-' || i % 50, 'old-' || i, 'old-' || i, 'printer', 'It is on fire', 'hardware', 'high', 'en'
  FROM generate_series(1, $jobs / 2) AS i;
INSERT INTO webhook_deliveries (webhook_id, type, job_id, data, state, next_attempt_at, delivered_at)
SELECT tenant, 'job.succeeded', id, '{}', 'delivered', NULL, now() FROM jobs WHERE id LIKE 'old-%';
INSERT INTO audit_log (tenant, actor, action, target)
SELECT tenant, 'ann', 'cancel', id FROM jobs WHERE id LIKE 'old-%';
"""


async def fill(ledger: Ledger, jobs: int) -> None:
    """As many old jobs, with what they leave behind; and the planner's statistics about them."""
    async with ledger.database.transaction() as connection:
        await connection.execute(_FILL.replace("$jobs", str(jobs)), timeout=600)
    await ledger.database.pool.execute("ANALYZE", timeout=600)
