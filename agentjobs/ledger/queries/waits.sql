-- name: claim_waits
-- Waits that the job's workflow is to show in the Temporal UI: long enough to be looked at, not told yet, and not so many
-- of one job that its history grows with them (the first 20, then at doubling intervals). Claimed by writing them down,
-- so that no lock is held while Temporal is told; a crash in between loses a line in the UI, and nothing else.
WITH next AS MATERIALIZED (
    SELECT id FROM jobs
     WHERE state = 'retry_wait'
       AND next_attempt_at > now() + make_interval(secs => :worth_seconds::double precision)
       AND wait_shown_until IS DISTINCT FROM next_attempt_at
       AND (waits_shown < 20
            OR wait_shown_at + make_interval(mins => (2 ^ least(waits_shown - 20, 20))::integer) < now())
     ORDER BY next_attempt_at DESC LIMIT :batch::integer
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs
   SET wait_shown_until = jobs.next_attempt_at, wait_shown_at = now(), waits_shown = jobs.waits_shown + 1
  FROM next WHERE jobs.id = next.id
RETURNING jobs.id AS job_id, jobs.step, jobs.attempt, jobs.failure ->> 'category' AS category,
          jobs.next_attempt_at AS until;

-- name: list_waiting
-- What waits, for what, until when: the longest overdue first.
SELECT * FROM jobs
 WHERE tenant = :tenant AND state = 'retry_wait' AND (:user::text IS NULL OR "user" = :user)
 ORDER BY next_attempt_at, id
 LIMIT :limit;

-- name: count_waiting
SELECT failure ->> 'category' AS category, count(*)::integer AS count, min(next_attempt_at) AS next_at
  FROM jobs
 WHERE tenant = :tenant AND state = 'retry_wait' AND (:user::text IS NULL OR "user" = :user)
 GROUP BY 1 ORDER BY 2 DESC, 1;
