-- What a request with a key was accepted with. A reviewer may raise the job's limits later; the answer to the same
-- request stays the first one.
ALTER TABLE idempotency_keys
    ADD COLUMN budget_tokens bigint,
    ADD COLUMN budget_usd numeric(12, 6),
    ADD COLUMN budget_steps integer;
UPDATE idempotency_keys AS keys
   SET budget_tokens = jobs.budget_tokens, budget_usd = jobs.budget_usd, budget_steps = jobs.budget_steps
  FROM jobs WHERE jobs.id = keys.job_id;
