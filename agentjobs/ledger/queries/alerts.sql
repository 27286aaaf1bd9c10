-- name: one_desk_at_a_time!
-- An attempt that was given up may still run beside its successor: one after the other, so that counts are exact.
SELECT pg_advisory_xact_lock(hashtext('agentjobs.alerts'), hashtext(:tenant));

-- name: record_alert$
-- An alert about those of these deaths that are still the letter's latest, open, and not told on this topic and level.
-- Its id, or nothing when there are none.
WITH given AS (
    SELECT unnest(:job_ids::text[]) AS job_id, unnest(:generations::integer[]) AS generation
), fresh AS (
    SELECT letter.id, letter.generation, letter.died_at,
           letter.effects_in_doubt <> '[]' AS in_doubt
      FROM given
      JOIN dead_letters letter ON letter.id = given.job_id AND letter.generation = given.generation
     WHERE letter.tenant = :tenant AND (:topic::text = 'died' OR letter.state = 'open')
       AND (:topic::text <> 'died' OR letter.alerted_at IS NULL)
       AND NOT EXISTS (SELECT FROM alert_letters told
                        WHERE told.job_id = letter.id AND told.generation = letter.generation
                          AND told.topic = :topic AND told.level = :level)
), alert AS (
    INSERT INTO alerts (id, tenant, kind, level, reason, agent, letter_count, in_doubt_count, first_died_at,
                        last_died_at, shown_ids)
    SELECT 'alert_' || replace(gen_random_uuid()::text, '-', ''), :tenant, :kind, :level, :reason, :agent, count(*),
           count(*) FILTER (WHERE in_doubt), min(died_at), max(died_at),
           (array_agg(id ORDER BY died_at, id))[1:(:shown)::integer]
      FROM fresh
    HAVING count(*) > 0
    RETURNING id
), members AS (
    INSERT INTO alert_letters (alert_id, job_id, generation, topic, level)
    SELECT alert.id, fresh.id, fresh.generation, :topic, :level FROM alert CROSS JOIN fresh
), deliveries AS (
    INSERT INTO alert_deliveries (alert_id, sink)
    SELECT alert.id, sink FROM alert CROSS JOIN unnest(:sinks::text[]) AS sink
)
SELECT id FROM alert;

-- name: record_approval_alerts
-- Alerts about calls of the tenant that wait for a person and of which nobody was told: up to `singles` one by one, more
-- summed up by agent and tool. Their ids.
WITH fresh AS MATERIALIZED (
    SELECT approvals.effect_key, approvals.number, approvals.job_id, approvals.tool, approvals.requested_at, jobs.agent,
           CASE WHEN count(*) OVER () <= :singles::integer THEN approvals.effect_key END AS alone
      FROM approvals JOIN jobs ON jobs.id = approvals.job_id
     WHERE approvals.tenant = :tenant AND approvals.state = 'requested' AND approvals.alerted_at IS NULL
       AND approvals.expires_at > now() AND jobs.state = 'waiting_approval' AND jobs.cancel_requested_at IS NULL
     ORDER BY approvals.requested_at, approvals.job_id LIMIT :limit
), told AS (
    UPDATE approvals SET alerted_at = now() FROM fresh
     WHERE approvals.effect_key = fresh.effect_key AND approvals.number = fresh.number
), alert AS (
    INSERT INTO alerts (id, tenant, kind, reason, agent, letter_count, in_doubt_count, first_died_at, last_died_at,
                        shown_ids)
    SELECT 'alert_' || replace(gen_random_uuid()::text, '-', ''), :tenant,
           CASE count(*) WHEN 1 THEN 'approval.requested' ELSE 'approvals.requested' END, tool, agent, count(*), 0,
           min(requested_at), max(requested_at),
           (array_agg(job_id ORDER BY requested_at, job_id))[1:(:shown)::integer]
      FROM fresh GROUP BY agent, tool, alone
    RETURNING id
), deliveries AS (
    INSERT INTO alert_deliveries (alert_id, sink)
    SELECT alert.id, sink FROM alert CROSS JOIN unnest(:sinks::text[]) AS sink
)
SELECT id FROM alert;

-- name: tell_of_approvals_again$
-- A word to each desk that has told nobody of a request for a minute: it may be gone. How many.
WITH untold AS (
    SELECT DISTINCT ON (approvals.tenant) approvals.tenant, approvals.job_id
      FROM approvals JOIN jobs ON jobs.id = approvals.job_id
     WHERE approvals.state = 'requested' AND approvals.alerted_at IS NULL AND approvals.expires_at > now()
       AND approvals.requested_at < now() - interval '1 minute'
       AND jobs.state = 'waiting_approval' AND jobs.cancel_requested_at IS NULL
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.tenant = approvals.tenant AND topic = 'approval_requested')
     ORDER BY approvals.tenant, approvals.requested_at
), told AS (
    INSERT INTO outbox (topic, job_id, tenant) SELECT 'approval_requested', job_id, tenant FROM untold
    RETURNING id
)
SELECT count(*) FROM told;

-- name: unlogged_alerts
-- Also those of an attempt that crashed before it could write them.
SELECT alerts.*
  FROM alerts JOIN alert_deliveries ON alert_deliveries.alert_id = alerts.id
 WHERE alerts.tenant = :tenant AND sink = 'log' AND alert_deliveries.state = 'waiting'
 ORDER BY alerts.created_at, alerts.id;

-- name: mark_logged!
-- The alerts stand in the log, and what else is to be delivered is on record: from now on the deaths count as told.
WITH logged AS (
    UPDATE alert_deliveries
       SET state = 'delivered', attempts = attempts + 1, delivered_at = now(), updated_at = now()
     WHERE alert_id = ANY (:alert_ids::text[]) AND sink = 'log' AND state = 'waiting'
), letters AS MATERIALIZED ( -- in the order of their ids, as whoever else takes several
    SELECT dead_letters.id
      FROM alert_letters JOIN dead_letters
        ON dead_letters.id = alert_letters.job_id AND dead_letters.generation = alert_letters.generation
     WHERE alert_letters.alert_id = ANY (:alert_ids::text[]) AND topic = 'died'
     ORDER BY dead_letters.id
       FOR NO KEY UPDATE OF dead_letters
)
UPDATE dead_letters SET alerted_at = coalesce(alerted_at, now()) FROM letters WHERE dead_letters.id = letters.id;

-- name: letters_to_escalate
-- Open for longer than the level's age, and not escalated on it or a higher one yet.
SELECT id AS job_id, generation, agent, reason
  FROM dead_letters
 WHERE tenant = :tenant AND state = 'open' AND alerted_at IS NOT NULL AND died_at <= now() - :age::interval
   AND NOT EXISTS (SELECT FROM alert_letters told
                    WHERE told.job_id = dead_letters.id AND told.generation = dead_letters.generation
                      AND told.topic = 'escalated' AND told.level >= :level)
 ORDER BY died_at, id LIMIT :limit;

-- name: letters_of_retention
-- Open for longer than this age, with (held) or without an effect in doubt, not told on this topic and level yet.
SELECT id AS job_id, generation, agent, reason
  FROM dead_letters
 WHERE tenant = :tenant AND state = 'open' AND alerted_at IS NOT NULL AND died_at <= now() - :age::interval
   AND :held::boolean = (effects_in_doubt <> '[]' OR EXISTS (
           SELECT FROM effects WHERE effects.job_id = dead_letters.id AND effects.state = 'begun'
                                 AND effect_class NOT IN ('read_only', 'transactional')))
   AND NOT EXISTS (SELECT FROM alert_letters told
                    WHERE told.job_id = dead_letters.id AND told.generation = dead_letters.generation
                      AND told.topic = :topic AND told.level = :level)
 ORDER BY died_at, id LIMIT :limit;

-- name: letters_to_discard
-- Announced long enough ago, old enough, and without an effect in doubt.
SELECT dead_letters.id
  FROM dead_letters
  JOIN alert_letters told ON told.job_id = dead_letters.id AND told.generation = dead_letters.generation
                         AND told.topic = 'discarding' AND told.level = 0
  JOIN alerts ON alerts.id = told.alert_id
 WHERE dead_letters.tenant = :tenant AND dead_letters.state = 'open' AND effects_in_doubt = '[]'
   AND died_at <= now() - :age::interval AND alerts.created_at <= now() - :notice::interval
   AND NOT EXISTS (SELECT FROM effects WHERE effects.job_id = dead_letters.id AND effects.state = 'begun'
                                         AND effect_class NOT IN ('read_only', 'transactional'))
 ORDER BY died_at, dead_letters.id LIMIT :limit;

-- name: next_look$
-- Seconds until the next of these ages is reached, a delivery is overdue, or the longest pause is over. NULL when
-- nothing is open and nothing waits.
WITH open AS (
    SELECT died_at FROM dead_letters WHERE tenant = :tenant AND state = 'open'
), waiting AS (
    SELECT min(next_attempt_at) + make_interval(secs => :overdue::double precision) AS at
      FROM alert_deliveries JOIN alerts ON alerts.id = alert_deliveries.alert_id
     WHERE alerts.tenant = :tenant AND alert_deliveries.state = 'waiting'
), due AS (
    SELECT min(died_at + age) AS at FROM open CROSS JOIN unnest(:ages::interval[]) AS age WHERE died_at + age > now()
)
SELECT CASE WHEN waiting.at IS NOT NULL OR EXISTS (SELECT FROM open)
            THEN least(extract(epoch FROM due.at - now())::double precision,
                       greatest(extract(epoch FROM waiting.at - now())::double precision, :shortest::double precision),
                       :longest::double precision) END
  FROM due CROSS JOIN waiting;

-- name: desk_looked!
INSERT INTO alert_desks (tenant, looked_at) VALUES (:tenant, now())
ON CONFLICT ON CONSTRAINT alert_desks_pkey DO UPDATE SET looked_at = excluded.looked_at;

-- name: wake_desks$
-- A desk that is gone does not escalate. One open letter of each tenant whose desk has not looked for long is told
-- again: that starts the desk, which finds the death told already and looks at all of them. How many.
WITH silent AS (
    SELECT DISTINCT ON (letter.tenant) letter.tenant, letter.id, letter.generation, letter.reason, letter.agent
      FROM dead_letters letter LEFT JOIN alert_desks ON alert_desks.tenant = letter.tenant
     WHERE letter.state = 'open' AND letter.alerted_at < now() - make_interval(secs => :silent_seconds::double precision)
       AND coalesce(alert_desks.looked_at < now() - make_interval(secs => :silent_seconds::double precision), true)
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.tenant = letter.tenant AND topic = 'job_died')
     ORDER BY letter.tenant, letter.died_at
), told AS (
    INSERT INTO outbox (topic, job_id, tenant, payload)
    SELECT 'job_died', id, tenant,
           jsonb_build_object('generation', generation, 'reason', reason, 'agent', agent)
      FROM silent
    RETURNING id
)
SELECT count(*) FROM told;

-- name: deliveries_left
-- Of these alerts, or (with none given) those that should have been tried again a while ago: their workflow is gone.
SELECT alert_id, array_agg(sink ORDER BY sink) AS sinks
  FROM alert_deliveries JOIN alerts ON alerts.id = alert_deliveries.alert_id
 WHERE alerts.tenant = :tenant AND alert_deliveries.state = 'waiting' AND sink <> 'log'
   AND (alert_id = ANY (:alert_ids::text[])
        OR next_attempt_at < now() - make_interval(secs => :overdue_seconds::double precision))
 GROUP BY alert_id ORDER BY alert_id LIMIT :limit;

-- name: begin_delivery^
-- The alert with this attempt counted. Not counted while the sink is throttled; nothing begins where it is disabled.
WITH sink AS (
    SELECT max(throttled_until) AS throttled_until, max(disabled_at) AS disabled_at
      FROM alert_sinks WHERE sink = :sink
), begun AS (
    UPDATE alert_deliveries
       SET attempts = attempts
                    + CASE WHEN sink.throttled_until > now() OR sink.disabled_at IS NOT NULL THEN 0 ELSE 1 END,
           state = CASE WHEN sink.disabled_at IS NOT NULL THEN 'disabled' ELSE state END,
           next_attempt_at = greatest(now(), sink.throttled_until), updated_at = now()
      FROM sink
     WHERE alert_id = :alert_id AND alert_deliveries.sink = :sink AND state = 'waiting'
    RETURNING state, attempts,
              greatest(extract(epoch FROM sink.throttled_until - now()), 0)::double precision AS throttled_seconds
)
SELECT alerts.*, begun.state AS delivery, begun.attempts, coalesce(begun.throttled_seconds, 0) AS throttled_seconds
  FROM begun JOIN alerts ON alerts.id = :alert_id;

-- name: delivered!
UPDATE alert_deliveries
   SET state = 'delivered', delivered_at = now(), updated_at = now(), last_status = :status, last_error = NULL,
       receipt = :receipt
 WHERE alert_id = :alert_id AND sink = :sink AND state = 'waiting';

-- name: not_delivered!
-- One attempt failed. With a wait another follows; without one the delivery is over, as given up or disabled.
UPDATE alert_deliveries
   SET state = :state, last_status = :status, last_error = :error, updated_at = now(),
       next_attempt_at = now() + make_interval(secs => :wait_seconds::double precision)
 WHERE alert_id = :alert_id AND sink = :sink AND state = 'waiting';

-- name: throttle_sink!
INSERT INTO alert_sinks (sink, throttled_until)
VALUES (:sink, now() + make_interval(secs => :seconds::double precision))
ON CONFLICT ON CONSTRAINT alert_sinks_pkey
DO UPDATE SET throttled_until = greatest(alert_sinks.throttled_until, excluded.throttled_until);

-- name: disable_sink!
INSERT INTO alert_sinks (sink, disabled_at) VALUES (:sink, now())
ON CONFLICT ON CONSTRAINT alert_sinks_pkey DO UPDATE SET disabled_at = coalesce(alert_sinks.disabled_at, now());

-- name: enable_sink!
UPDATE alert_sinks SET disabled_at = NULL, throttled_until = NULL WHERE sink = :sink;

-- name: disabled_sinks
SELECT sink, disabled_at FROM alert_sinks WHERE disabled_at IS NOT NULL ORDER BY sink;

-- name: list_deliveries
SELECT alert_deliveries.* FROM alert_deliveries JOIN alerts ON alerts.id = alert_deliveries.alert_id
 WHERE alerts.tenant = :tenant ORDER BY alerts.created_at DESC, alerts.id, sink LIMIT :limit;

-- name: begin_incident^
-- Whether this call is the first of the key, since when it is under way (seconds), and its receipt if it has one.
WITH begun AS (
    INSERT INTO alert_incidents (key, tenant) VALUES (:key, :tenant)
    ON CONFLICT ON CONSTRAINT alert_incidents_pkey DO NOTHING
    RETURNING key
)
SELECT true AS first, 0::double precision AS begun_seconds, NULL::text AS receipt FROM begun
UNION ALL
SELECT false, extract(epoch FROM now() - begun_at)::double precision, receipt
  FROM alert_incidents WHERE key = :key AND tenant = :tenant;

-- name: begin_incident_again$
-- Only one of several attempts that looked and found nothing may send.
UPDATE alert_incidents SET begun_at = now()
 WHERE key = :key AND receipt IS NULL AND begun_at <= now() - make_interval(secs => :settled_seconds::double precision)
RETURNING true;

-- name: release_incident!
-- It was certainly not opened.
DELETE FROM alert_incidents WHERE key = :key AND receipt IS NULL;

-- name: incident_opened!
UPDATE alert_incidents SET receipt = :receipt, opened_at = now() WHERE key = :key AND receipt IS NULL;
