-- name: measure_standings
-- What stands in the ledger now, by subject and label, with the age of the oldest in seconds. Each part is found by a
-- partial index of what is under way (the outbox is a queue, and short): what has ended is never read.
SELECT 'jobs' AS subject, state AS label, count(*) AS count,
       extract(epoch FROM now() - min(created_at))::double precision AS oldest_seconds
  FROM jobs
 WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
 GROUP BY state
UNION ALL
SELECT 'jobs', 'dead', count(*), extract(epoch FROM now() - min(died_at))::double precision
  FROM (SELECT died_at FROM dead_letters WHERE state = 'open'
         UNION ALL
        SELECT died_at FROM dead_letters WHERE state IN ('redrive_requested', 'discard_requested')) AS letters
UNION ALL
SELECT 'waits', failure ->> 'category', count(*), NULL
  FROM jobs
 WHERE state = 'retry_wait'
 GROUP BY failure ->> 'category'
UNION ALL
SELECT 'outbox', topic, count(*), extract(epoch FROM now() - min(created_at))::double precision
  FROM outbox
 GROUP BY topic
UNION ALL
SELECT 'webhook_deliveries', 'waiting', count(*), extract(epoch FROM now() - min(created_at))::double precision
  FROM webhook_deliveries
 WHERE state = 'waiting'
UNION ALL
SELECT 'alert_deliveries', 'waiting', count(*),
       extract(epoch FROM now() - min(alerts.created_at))::double precision
  FROM alert_deliveries JOIN alerts ON alerts.id = alert_deliveries.alert_id
 WHERE alert_deliveries.state = 'waiting'
UNION ALL
SELECT 'workers', 'present', count(*), NULL
  FROM workers
 WHERE stopped_at IS NULL AND taken_over_at IS NULL;
