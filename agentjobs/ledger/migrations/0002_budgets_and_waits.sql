-- Budgets of tenants, steps in a job's budget, attempts that were cut off on purpose, answers that a provider writes in the
-- background, a trace id for each job, which waits the Temporal UI was told of, and what exactly an audited word asked for.

ALTER TABLE tenants
    ADD COLUMN monthly_tokens bigint CONSTRAINT tenants_monthly_tokens_positive CHECK (monthly_tokens > 0),
    ADD COLUMN monthly_usd numeric(12, 6) CONSTRAINT tenants_monthly_usd_positive CHECK (monthly_usd > 0);

-- What a tenant with a monthly budget has spent, and holds back, in a month (UTC). Tenants without one have no row: it would
-- be a row that all their calls wait for. What they spent is the sum of their attempts.
CREATE TABLE tenant_months (
    tenant text NOT NULL CONSTRAINT tenant_months_tenant_fkey REFERENCES tenants,
    month date NOT NULL CONSTRAINT tenant_months_month_is_first_day CHECK (extract(day FROM month) = 1),
    tokens bigint NOT NULL DEFAULT 0,
    usd numeric(18, 9) NOT NULL DEFAULT 0,
    tokens_reserved bigint NOT NULL DEFAULT 0
        CONSTRAINT tenant_months_tokens_reserved_not_negative CHECK (tokens_reserved >= 0),
    usd_reserved numeric(18, 9) NOT NULL DEFAULT 0
        CONSTRAINT tenant_months_usd_reserved_not_negative CHECK (usd_reserved >= 0),
    CONSTRAINT tenant_months_pkey PRIMARY KEY (tenant, month)
) WITH (fillfactor = 50); -- room for updates in place: the row of a busy tenant changes with every model call

ALTER TABLE jobs
    ADD COLUMN budget_steps integer CONSTRAINT jobs_budget_steps_positive CHECK (budget_steps > 0),
    ADD COLUMN trace_id text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
        CONSTRAINT jobs_trace_id_form CHECK (trace_id ~ '^[0-9a-f]{32}$'),
    -- Which wait the workflow was told of last, and how many since the job's last (re)start.
    ADD COLUMN wait_shown_until timestamptz,
    ADD COLUMN wait_shown_at timestamptz,
    ADD COLUMN waits_shown integer NOT NULL DEFAULT 0;
CREATE INDEX jobs_waiting ON jobs (next_attempt_at) WHERE state = 'retry_wait';

ALTER TABLE effects
    ADD COLUMN response_id text,
    ADD COLUMN response_model text,
    ADD CONSTRAINT effects_response_has_model CHECK ((response_id IS NULL) = (response_model IS NULL));

ALTER TABLE attempts
    DROP CONSTRAINT attempts_outcome_known,
    ADD CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('running', 'succeeded', 'failed', 'crashed', 'abandoned')),
    -- The tenant's month that this attempt's reservation is held in; NULL: the tenant has no monthly budget.
    ADD COLUMN budget_month date;

-- What was chosen with an action: a redrive's policy, and whether effects are to be had again. No content.
ALTER TABLE audit_log ADD COLUMN details jsonb NOT NULL DEFAULT '{}';
