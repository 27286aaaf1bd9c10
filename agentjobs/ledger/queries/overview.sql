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
