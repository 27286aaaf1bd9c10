-- Where both are locked, the webhook comes before its deliveries: in this order a removal takes them too.

-- name: claim_webhook_deliveries
-- Due deliveries: of each webhook so many as there is room for, in turn over the tenants. (The webhooks are found by
-- skipping along the index, not by reading the backlog.) Each is counted as an attempt, and due again when that must
-- be over; so a relay that dies delays what it held, and loses nothing. `busy` counts by webhook what this relay sends.
WITH RECURSIVE waiting (webhook_id) AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE state = 'waiting' ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT later.webhook_id FROM webhook_deliveries later
             WHERE later.state = 'waiting' AND later.webhook_id > waiting.webhook_id
             ORDER BY later.webhook_id LIMIT 1)
      FROM waiting WHERE waiting.webhook_id IS NOT NULL
), room AS (
    SELECT webhooks.id, webhooks.tenant, :each::integer - coalesce((:busy::jsonb ->> webhooks.id)::integer, 0) AS free
      FROM waiting JOIN webhooks ON webhooks.id = waiting.webhook_id
     WHERE disabled_at IS NULL AND coalesce(throttled_until <= now(), true)
), due AS (
    SELECT next.id, row_number() OVER (PARTITION BY room.tenant ORDER BY next.next_attempt_at, next.id) AS turn
      FROM room CROSS JOIN LATERAL (
           SELECT id, next_attempt_at FROM webhook_deliveries
            WHERE webhook_id = room.id AND state = 'waiting' AND next_attempt_at <= now()
            ORDER BY next_attempt_at LIMIT greatest(room.free, 0)) next
), claimed AS MATERIALIZED (
    SELECT id, job_id FROM webhook_deliveries
     WHERE id IN (SELECT id FROM due ORDER BY turn, id LIMIT :batch)
       AND state = 'waiting' AND next_attempt_at <= now() -- another relay may have come first
       FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries AS delivery
   SET attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => :lease_seconds::double precision)
  FROM claimed LEFT JOIN jobs ON jobs.id = claimed.job_id, webhooks
 WHERE delivery.id = claimed.id AND webhooks.id = delivery.webhook_id
RETURNING delivery.id, delivery.webhook_id, delivery.type, delivery.data, delivery.created_at, delivery.attempts,
          delivery.attempts - delivery.earlier_attempts AS tries, now() AS claimed_at, webhooks.url, webhooks.secret,
          CASE WHEN webhooks.old_secret_until > now() THEN webhooks.old_secret END AS old_secret, webhooks.tenant,
          delivery.job_id, jobs.trace_id, jobs.trace_parent, jobs.trace_sampled, jobs.started_at;

-- name: webhook_delivered!
-- By whichever attempt since the latest replay: one that was thought lost may come through.
WITH webhook AS MATERIALIZED (
    SELECT id FROM webhooks WHERE id = :webhook_id FOR NO KEY UPDATE
), delivered AS (
    UPDATE webhook_deliveries AS delivery
       SET state = 'delivered', delivered_at = now(), next_attempt_at = NULL, last_status = :status, last_error = NULL
      FROM webhook
     WHERE delivery.id = :id AND delivery.webhook_id = webhook.id AND earlier_attempts < :attempt
       AND state <> 'delivered'
)
UPDATE webhooks SET failing_since = NULL, failed_count = 0, throttled_until = NULL
  FROM webhook WHERE webhooks.id = webhook.id AND failing_since IS NOT NULL;

-- name: webhook_not_delivered^
-- By the latest attempt, which no replay has overtaken. With a wait another follows; without one it has failed.
WITH webhook AS MATERIALIZED (
    SELECT id FROM webhooks WHERE id = :webhook_id FOR NO KEY UPDATE
), missed AS (
    UPDATE webhook_deliveries AS delivery
       SET state = CASE WHEN :wait_seconds::double precision IS NULL THEN 'failed' ELSE 'waiting' END,
           next_attempt_at = now() + make_interval(secs => :wait_seconds::double precision),
           last_status = :status, last_error = :error
      FROM webhook
     WHERE delivery.id = :id AND delivery.webhook_id = webhook.id AND state = 'waiting'
       AND attempts = :attempt AND earlier_attempts < :attempt
    RETURNING state
)
UPDATE webhooks
   SET failing_since = coalesce(failing_since, now()),
       failed_count = failed_count + CASE missed.state WHEN 'failed' THEN 1 ELSE 0 END,
       throttled_until = CASE WHEN :throttle_seconds::double precision > 0
                              THEN greatest(throttled_until,
                                            now() + make_interval(secs => :throttle_seconds::double precision))
                              ELSE throttled_until END
  FROM webhook CROSS JOIN missed
 WHERE webhooks.id = webhook.id
RETURNING failed_count, now() - failing_since AS failing_for;

-- name: add_webhook_test^
-- One at a time, and to what is enabled.
WITH webhook AS (
    SELECT tenant, id FROM webhooks WHERE tenant = :tenant AND id = :webhook_id AND disabled_at IS NULL FOR KEY SHARE
), added AS (
    INSERT INTO webhook_deliveries (webhook_id, type, data)
    SELECT id, 'webhook.test', '{}' FROM webhook
     WHERE NOT EXISTS (SELECT FROM webhook_deliveries
                        WHERE webhook_id = :webhook_id AND type = 'webhook.test' AND state = 'waiting')
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target)
    SELECT webhook.tenant, :actor, 'test_webhook', webhook.id FROM webhook JOIN added ON added.webhook_id = webhook.id
)
SELECT * FROM added;

-- name: replay_webhook_delivery^
-- Once more from the beginning of the schedule, under the same id, whatever has become of it.
WITH webhook AS MATERIALIZED (
    SELECT tenant, id FROM webhooks
     WHERE tenant = :tenant AND id = :webhook_id AND disabled_at IS NULL FOR NO KEY UPDATE
), replayed AS (
    UPDATE webhook_deliveries AS delivery
       SET state = 'waiting', earlier_attempts = attempts, next_attempt_at = now(), delivered_at = NULL
      FROM webhook WHERE delivery.id = :id AND delivery.webhook_id = webhook.id
    RETURNING delivery.*
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT webhook.tenant, :actor, 'replay_webhook_delivery', webhook.id, jsonb_build_object('delivery', replayed.id)
      FROM webhook JOIN replayed ON replayed.webhook_id = webhook.id
)
SELECT * FROM replayed;

-- name: list_webhook_deliveries
SELECT * FROM webhook_deliveries
 WHERE webhook_id = :webhook_id
   AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at::timestamptz, :before_id::text))
 ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: prune_webhook_deliveries$
-- What is over and this old. How many.
WITH pruned AS (
    DELETE FROM webhook_deliveries
     WHERE id IN (SELECT id FROM webhook_deliveries
                   WHERE created_at < now() - :age::interval AND state <> 'waiting'
                   ORDER BY created_at LIMIT :limit)
    RETURNING id
)
SELECT count(*) FROM pruned;
