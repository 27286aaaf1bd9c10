-- name: count_stages
-- The live jobs that the caller may see, by where they are, and since when the one that is there longest is. A NULL user
-- means the whole tenant.
SELECT stage, count(*)::integer AS count, min(since) AS oldest_at
  FROM jobs CROSS JOIN LATERAL (
       SELECT CASE WHEN state = 'pending' AND dispatched_at IS NULL THEN 'to_start'
                   WHEN state = 'pending' THEN 'to_begin'
                   WHEN state = 'retry_wait' AND next_attempt_at <= now() THEN 'due'
                   ELSE state END AS stage,
              CASE WHEN state = 'pending' THEN coalesce(dispatched_at, created_at)
                   WHEN state = 'retry_wait' AND next_attempt_at <= now() THEN next_attempt_at
                   ELSE updated_at END AS since) AS here
 WHERE tenant = :tenant AND (:user::text IS NULL OR "user" = :user)
   AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
 GROUP BY stage;

-- name: count_outbox
-- What Temporal is not told of yet, over all tenants; `put_off` of them it has not taken at least once.
SELECT topic, count(*)::integer AS count, (count(*) FILTER (WHERE attempts > 0))::integer AS put_off,
       min(created_at) AS oldest_at
  FROM outbox GROUP BY topic ORDER BY topic;

-- name: present_workers
-- Each with what it has in hand: its slots in use, beside those of records, which take milliseconds.
SELECT workers.identity, workers.build, workers.started_at, count(attempts.id)::integer AS in_hand,
       min(attempts.started_at) AS oldest_at
  FROM workers LEFT JOIN attempts ON attempts.worker = workers.id AND attempts.outcome = 'running'
 WHERE stopped_at IS NULL AND taken_over_at IS NULL AND lost_at IS NULL
 GROUP BY workers.id ORDER BY workers.number;

-- name: note_task_queue!
INSERT INTO task_queues (name, kind, backlog, oldest_seconds, pollers)
VALUES (:name, :kind, :backlog::bigint, :oldest_seconds::double precision, :pollers::integer)
    ON CONFLICT ON CONSTRAINT task_queues_pkey DO UPDATE
   SET backlog = excluded.backlog, oldest_seconds = excluded.oldest_seconds, pollers = excluded.pollers,
       seen_at = now();

-- name: list_task_queues
SELECT * FROM task_queues ORDER BY name, kind;
