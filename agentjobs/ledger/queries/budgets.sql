-- name: lock_tenant$
-- Whether it has a monthly budget.
SELECT monthly_tokens IS NOT NULL OR monthly_usd IS NOT NULL FROM tenants WHERE id = :tenant FOR NO KEY UPDATE;

-- name: read_budget^
-- Of a tenant with a monthly budget from the row that its calls wait for; of any other from its attempts.
WITH this AS (
    SELECT id, monthly_tokens, monthly_usd, date_trunc('month', now() AT TIME ZONE 'UTC')::date AS month
      FROM tenants WHERE id = :tenant
), summed AS (
    SELECT coalesce(sum(attempts.tokens_in + attempts.tokens_out), 0)::bigint AS tokens,
           coalesce(sum(attempts.usd), 0) AS usd,
           coalesce(sum(attempts.tokens_reserved), 0)::bigint AS tokens_reserved,
           coalesce(sum(attempts.usd_reserved), 0) AS usd_reserved
      FROM this JOIN jobs ON jobs.tenant = this.id JOIN attempts ON attempts.job_id = jobs.id
     WHERE this.monthly_tokens IS NULL AND this.monthly_usd IS NULL
       AND attempts.started_at >= this.month::timestamp AT TIME ZONE 'UTC'
)
SELECT this.month, this.monthly_tokens, this.monthly_usd, coalesce(months.tokens, summed.tokens) AS tokens,
       coalesce(months.usd, summed.usd) AS usd, coalesce(months.tokens_reserved, summed.tokens_reserved) AS tokens_reserved,
       coalesce(months.usd_reserved, summed.usd_reserved) AS usd_reserved
  FROM this CROSS JOIN summed
  LEFT JOIN tenant_months AS months
    ON months.tenant = this.id AND months.month = this.month
       AND (this.monthly_tokens IS NOT NULL OR this.monthly_usd IS NOT NULL);

-- name: set_budget!
UPDATE tenants SET monthly_tokens = :tokens::bigint, monthly_usd = :usd::numeric WHERE id = :tenant;

-- name: drop_months!
-- Without a budget nothing is counted in one row. (A call that began while the budget was removed may have left one.)
DELETE FROM tenant_months WHERE tenant = :tenant AND month >= date_trunc('month', now() AT TIME ZONE 'UTC')::date;

-- name: join_attempts!
-- Attempts of this month, also those in flight: from now on what they hold back is held in the tenant's month.
UPDATE attempts SET budget_month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
  FROM jobs
 WHERE jobs.id = attempts.job_id AND jobs.tenant = :tenant AND attempts.budget_month IS NULL
   AND (attempts.tokens_reserved > 0 OR attempts.usd_reserved > 0)
   AND attempts.started_at >= date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';

-- name: open_month!
INSERT INTO tenant_months (tenant, month, tokens, usd, tokens_reserved, usd_reserved)
SELECT :tenant, date_trunc('month', now() AT TIME ZONE 'UTC')::date,
       coalesce(sum(attempts.tokens_in + attempts.tokens_out), 0), coalesce(sum(attempts.usd), 0),
       coalesce(sum(attempts.tokens_reserved), 0), coalesce(sum(attempts.usd_reserved), 0)
  FROM attempts JOIN jobs ON jobs.id = attempts.job_id
 WHERE jobs.tenant = :tenant
   AND attempts.started_at >= date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';

-- name: audit_budget!
INSERT INTO audit_log (tenant, actor, action, target, note) VALUES (:tenant, :actor, 'set_budget', :tenant, :note);
