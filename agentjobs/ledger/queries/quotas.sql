-- name: read_quota^
-- The tenant's own limits (NULL: as the installation has it), and what is in use of the effective ones.
SELECT id AS tenant, quota_in_flight AS in_flight, quota_per_minute AS per_minute, quota_queue_length AS queue_length,
       running_cap,
       quota_uses(id, :user::text, :in_flight::integer, :per_minute::integer, :queue_length::integer) AS quotas,
       (SELECT count(*) FROM jobs
         WHERE jobs.tenant = tenants.id AND dispatched_at IS NOT NULL
           AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')) AS running
  FROM tenants WHERE id = :tenant;

-- name: set_quota$
-- Whether there is such a tenant.
WITH changed AS (
    UPDATE tenants
       SET quota_in_flight = :in_flight::integer, quota_per_minute = :per_minute::integer,
           quota_queue_length = :queue_length::integer, running_cap = :running_cap::integer
     WHERE id = :tenant
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT :by_tenant, :by_user, 'set_quota', id,
           jsonb_build_object('in_flight', quota_in_flight, 'per_minute', quota_per_minute,
                              'queue_length', quota_queue_length, 'running', running_cap)
      FROM changed
)
SELECT EXISTS (SELECT FROM changed);
