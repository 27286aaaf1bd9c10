-- Whoever changes anything here is put on record by the same statement (nobody, when the installation begins).

-- name: create_tenant$
-- True when it is new.
WITH created AS (
    INSERT INTO tenants (id) VALUES (:id) ON CONFLICT DO NOTHING RETURNING id
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT :by_tenant::text, :by_user::text, 'create_tenant', id FROM created WHERE :by_tenant::text IS NOT NULL
)
SELECT EXISTS (SELECT FROM created);

-- name: tenant_exists$
SELECT EXISTS (SELECT FROM tenants WHERE id = :id);

-- name: any_key_exists$
SELECT EXISTS (SELECT FROM api_keys);

-- name: create_key^
WITH created AS (
    INSERT INTO api_keys (id, tenant, "user", roles, key_hash, expires_at)
    VALUES (:id, :tenant, :user, :roles, :key_hash, now() + make_interval(secs => :seconds::double precision))
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT :by_tenant::text, :by_user::text, 'create_key', id,
           jsonb_build_object('tenant', tenant, 'user', "user", 'roles', roles)
      FROM created WHERE :by_tenant::text IS NOT NULL
)
SELECT * FROM created;

-- name: find_key^
SELECT id, tenant, "user", roles, extract(epoch FROM expires_at - now())::float8 AS seconds_left FROM api_keys
 WHERE key_hash = :key_hash AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: find_key_by_id^
SELECT id, tenant, "user", roles, extract(epoch FROM expires_at - now())::float8 AS seconds_left, key_hash FROM api_keys
 WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: list_keys
SELECT id, tenant, "user", roles, created_at, expires_at, revoked_at
  FROM api_keys WHERE tenant = :tenant ORDER BY created_at, id;

-- name: read_key^
SELECT id, tenant, "user", roles, created_at, expires_at, revoked_at
  FROM api_keys WHERE tenant = :tenant AND id = :id;

-- name: revoke_key^
WITH revoked AS (
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE tenant = :tenant AND id = :id
    RETURNING id, tenant, "user", roles, created_at, expires_at, revoked_at
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT :by_tenant::text, :by_user::text, 'revoke_key', id FROM revoked WHERE :by_tenant::text IS NOT NULL
)
SELECT * FROM revoked;

-- name: add_grant^
WITH granted AS (
    INSERT INTO grants (tenant, "user", action, granted_by) VALUES (:tenant, :user, :action, :granted_by)
    ON CONFLICT (tenant, "user", action) DO UPDATE SET action = excluded.action
    RETURNING tenant, "user", action, granted_by, created_at
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT :by_tenant::text, :by_user::text, 'add_grant', "user" || ' ' || action FROM granted WHERE :by_tenant::text IS NOT NULL
)
SELECT * FROM granted;

-- name: revoke_grant$
WITH gone AS (
    DELETE FROM grants WHERE tenant = :tenant AND "user" = :user AND action = :action RETURNING "user", action
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT :by_tenant::text, :by_user::text, 'revoke_grant', "user" || ' ' || action FROM gone WHERE :by_tenant::text IS NOT NULL
)
SELECT EXISTS (SELECT FROM gone);

-- name: list_grants
SELECT tenant, "user", action, granted_by, created_at FROM grants
 WHERE tenant = :tenant AND (:user::text IS NULL OR "user" = :user) ORDER BY "user", action;

-- name: is_first_admin_key$
-- The key that the installation began with; only it may make tenants.
SELECT :id = (SELECT id FROM api_keys WHERE 'admin' = ANY (roles) ORDER BY created_at, id LIMIT 1);
