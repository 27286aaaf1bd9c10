-- name: count_jobs_by_state
-- Of each state at most so many, and since when the oldest of them is there: who looks every two seconds must not read a
-- million rows each time. A NULL user means that the caller may see the whole tenant.
SELECT states.state, counted.count, counted.oldest_at
  FROM unnest(:states::text[]) WITH ORDINALITY AS states (state, place)
 CROSS JOIN LATERAL (
     SELECT count(*)::integer AS count, min(created_at) AS oldest_at
       FROM (SELECT created_at FROM jobs
              WHERE tenant = :tenant AND state = states.state AND (:user::text IS NULL OR "user" = :user)
              ORDER BY created_at, id LIMIT :most::integer) AS these
 ) AS counted
 ORDER BY states.place;

-- name: usage_of_month
-- What the tenant's model calls of this month (UTC) have cost, and hold back, by agent and model: the dearest first.
SELECT jobs.agent, attempts.model, count(*)::integer AS calls, count(DISTINCT jobs.id)::integer AS jobs,
       sum(attempts.tokens_in)::bigint AS tokens_in, sum(attempts.tokens_out)::bigint AS tokens_out,
       sum(attempts.usd) AS usd, sum(attempts.tokens_reserved)::bigint AS tokens_reserved,
       sum(attempts.usd_reserved) AS usd_reserved
  FROM jobs JOIN attempts ON attempts.job_id = jobs.id
 WHERE jobs.tenant = :tenant AND attempts.model IS NOT NULL
   AND attempts.started_at >= date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
 GROUP BY jobs.agent, attempts.model
 ORDER BY sum(attempts.usd) DESC, sum(attempts.tokens_in + attempts.tokens_out) DESC, jobs.agent, attempts.model;

-- name: tenants_this_month
-- Every tenant with its limits, what it has spent and holds back this month (UTC, as read_budget has it), and its jobs that
-- wait for their start or are under way.
WITH this AS (
    SELECT date_trunc('month', now() AT TIME ZONE 'UTC')::date AS month
), summed AS (
    SELECT jobs.tenant, sum(attempts.tokens_in + attempts.tokens_out)::bigint AS tokens, sum(attempts.usd) AS usd,
           sum(attempts.tokens_reserved)::bigint AS tokens_reserved, sum(attempts.usd_reserved) AS usd_reserved
      FROM this JOIN attempts ON attempts.started_at >= this.month::timestamp AT TIME ZONE 'UTC'
      JOIN jobs ON jobs.id = attempts.job_id
      JOIN tenants ON tenants.id = jobs.tenant AND tenants.monthly_tokens IS NULL AND tenants.monthly_usd IS NULL
     GROUP BY jobs.tenant
), under_way AS (
    SELECT tenant, count(*) FILTER (WHERE dispatched_at IS NULL)::integer AS queued,
           count(*) FILTER (WHERE dispatched_at IS NOT NULL)::integer AS running
      FROM jobs WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval') GROUP BY tenant
)
SELECT tenants.id AS tenant, this.month, monthly_tokens, monthly_usd,
       coalesce(months.tokens, summed.tokens, 0) AS tokens, coalesce(months.usd, summed.usd, 0) AS usd,
       coalesce(months.tokens_reserved, summed.tokens_reserved, 0) AS tokens_reserved,
       coalesce(months.usd_reserved, summed.usd_reserved, 0) AS usd_reserved,
       quota_in_flight AS in_flight, quota_per_minute AS per_minute, quota_queue_length AS queue_length, running_cap,
       coalesce(under_way.queued, 0) AS queued, coalesce(under_way.running, 0) AS running
  FROM tenants CROSS JOIN this
  LEFT JOIN tenant_months AS months
    ON months.tenant = tenants.id AND months.month = this.month
       AND (monthly_tokens IS NOT NULL OR monthly_usd IS NOT NULL)
  LEFT JOIN summed ON summed.tenant = tenants.id
  LEFT JOIN under_way ON under_way.tenant = tenants.id
 ORDER BY coalesce(months.usd, summed.usd, 0) DESC, tenants.id LIMIT :limit;
