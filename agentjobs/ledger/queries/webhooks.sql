-- Whoever changes a webhook is put on record by the same statement.

-- name: count_webhooks$
SELECT count(*) FROM webhooks WHERE tenant = :tenant;

-- name: add_webhook^
WITH added AS (
    INSERT INTO webhooks (id, tenant, url, types, description, secret, created_by)
    VALUES (:id, :tenant, :url, :types, :description, :secret, :created_by)
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT tenant, created_by, 'add_webhook', id, jsonb_build_object('types', types) FROM added
)
SELECT * FROM added;

-- name: list_webhooks
SELECT * FROM webhooks WHERE tenant = :tenant ORDER BY created_at, id;

-- name: read_webhook^
SELECT * FROM webhooks WHERE tenant = :tenant AND id = :id;

-- name: remove_webhook$
-- With its deliveries: what waited is not sent.
WITH removed AS (
    DELETE FROM webhooks WHERE tenant = :tenant AND id = :id RETURNING tenant, id
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target) SELECT tenant, :actor, 'remove_webhook', id FROM removed
)
SELECT EXISTS (SELECT FROM removed);

-- name: enable_webhook^
-- As if it had never failed. Enabling what is enabled changes nothing, and is put on record all the same.
WITH enabled AS (
    UPDATE webhooks
       SET disabled_at = NULL, disabled_because = NULL, failing_since = NULL, failed_count = 0, throttled_until = NULL
     WHERE tenant = :tenant AND id = :id
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target) SELECT tenant, :actor, 'enable_webhook', id FROM enabled
)
SELECT * FROM enabled;

-- name: disable_webhook$
-- It gets nothing any more, and what waits for it has failed. True when it was enabled.
WITH disabled AS (
    UPDATE webhooks SET disabled_at = now(), disabled_because = :because
     WHERE id = :id AND disabled_at IS NULL
    RETURNING tenant, id
), failed AS (
    UPDATE webhook_deliveries SET state = 'failed', last_error = 'webhook_disabled', next_attempt_at = NULL
      FROM disabled WHERE webhook_id = disabled.id AND state = 'waiting'
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT tenant, :actor, 'disable_webhook', id, jsonb_build_object('because', :because::text) FROM disabled
)
SELECT EXISTS (SELECT FROM disabled);

-- name: rotate_webhook_secret^
-- The secret so far signs too until the overlap is over; one that was rotated before no longer does.
WITH rotated AS (
    UPDATE webhooks
       SET secret = :secret,
           old_secret = CASE WHEN :overlap_seconds::integer > 0 THEN secret END,
           old_secret_until = CASE WHEN :overlap_seconds::integer > 0
                                   THEN now() + make_interval(secs => :overlap_seconds::integer) END
     WHERE tenant = :tenant AND id = :id
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT tenant, :actor, 'rotate_webhook_secret', id,
           jsonb_build_object('overlap_seconds', :overlap_seconds::integer)
      FROM rotated
)
SELECT * FROM rotated;

-- name: forget_old_secrets!
-- Those that sign no more.
UPDATE webhooks SET old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= now();
