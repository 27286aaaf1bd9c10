-- name: read_job^
-- A NULL user means that the caller may see the whole tenant.
SELECT * FROM jobs WHERE id = :id AND tenant = :tenant AND (:user::text IS NULL OR "user" = :user);

-- name: standing^
SELECT id AS job_id, state, generation, step FROM jobs WHERE id = :id;

-- name: trace_of_job^
SELECT id AS job_id, tenant, agent, generation, trace_id, trace_sampled, dispatched_at FROM jobs WHERE id = :id;

-- name: list_jobs
-- Newest first; the cursor is the last row's (created_at, id). The tenant stands first in the index.
SELECT * FROM jobs
 WHERE tenant = :tenant AND (:user::text IS NULL OR "user" = :user) AND erased_at IS NULL
   AND (:state::text IS NULL OR state = :state) AND (:agent::text IS NULL OR agent = :agent)
   AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at::timestamptz, :before_id::text))
 ORDER BY created_at DESC, id DESC
 LIMIT :limit;

-- name: attempts_of_job
SELECT attempts.*, jobs.trace_id
  FROM attempts JOIN jobs ON jobs.id = attempts.job_id
 WHERE attempts.job_id = :job_id ORDER BY attempts.id;

-- name: events_of_job
SELECT seq, type, data, at FROM job_events WHERE job_id = :job_id AND seq > :after ORDER BY seq LIMIT :limit;
