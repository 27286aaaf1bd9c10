-- name: lock_to_erase^
SELECT jobs.state, jobs.erased_at, dead_letters.state AS letter_state
  FROM jobs LEFT JOIN dead_letters ON dead_letters.id = jobs.id
 WHERE jobs.id = :id AND jobs.tenant = :tenant
   FOR NO KEY UPDATE OF jobs;

-- name: erasure_of_job^
-- The one that is under way.
SELECT * FROM erasures WHERE job_id = :job_id AND tenant = :tenant AND completed_at IS NULL;

-- name: insert_erasure^
WITH ordered AS (
    INSERT INTO erasures (id, tenant, "user", job_id, requested_by)
    VALUES (:id, :tenant, :user, :job_id, :requested_by)
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT tenant, requested_by, 'request_erasure', coalesce("user", job_id),
           jsonb_build_object('erasure', id, 'of', CASE WHEN "user" IS NULL THEN 'job' ELSE 'user' END)
      FROM ordered
)
SELECT * FROM ordered;

-- name: read_erasure^
SELECT * FROM erasures WHERE id = :id AND tenant = :tenant;

-- name: list_erasures
-- Latest first, with how far each has come.
SELECT erasures.id, erasures."user", erasures.job_id, erasures.requested_by, erasures.created_at, erasures.completed_at,
       jobs.*
  FROM erasures CROSS JOIN LATERAL (
       SELECT count(*)::integer AS jobs, count(*) FILTER (WHERE erased_at IS NOT NULL)::integer AS erased,
              count(*) FILTER (WHERE finalized_at IS NULL)::integer AS not_ended,
              count(*) FILTER (WHERE workflow_look_at IS NOT NULL)::integer AS workflows_left
         FROM erasure_jobs WHERE erasure_id = erasures.id) AS jobs
 WHERE tenant = :tenant
   AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at::timestamptz, :before_id::text))
 ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: erasures_under_way
-- Those that nobody has looked at for the longest time: an order that waits for its jobs' ends holds up no other one.
WITH next AS MATERIALIZED (
    SELECT id FROM erasures WHERE completed_at IS NULL ORDER BY looked_at LIMIT :batch FOR UPDATE SKIP LOCKED
)
UPDATE erasures SET looked_at = clock_timestamp() FROM next WHERE erasures.id = next.id
RETURNING erasures.*;

-- name: claim_ended_to_erase
SELECT id FROM jobs
 WHERE id IN (SELECT job_id FROM erasure_jobs
               WHERE erasure_id = :erasure_id AND finalized_at IS NOT NULL AND erased_at IS NULL LIMIT :batch)
   AND erased_at IS NULL
 ORDER BY id
   FOR NO KEY UPDATE SKIP LOCKED;

-- name: mark_erased!
WITH erased AS (
    UPDATE jobs SET erased_at = now() WHERE id = ANY (:ids::text[]) AND erased_at IS NULL
    RETURNING id, tenant
)
INSERT INTO audit_log (tenant, actor, action, target, details)
SELECT tenant, :actor, 'erase_job', id, jsonb_build_object('erasure', :erasure_id::text) FROM erased;

-- name: erase_fingerprints!
-- The keys stay, so that a repeated request makes no second job. What they were used for can no longer be guessed.
UPDATE idempotency_keys SET fingerprint = '' WHERE job_id = ANY (:ids::text[]);

-- name: erase_tickets!
-- A ticket's number, its key and its state stay: a record of what was done, without the words.
UPDATE tickets SET subject = '(erased)', body = '', category = 'erased', language = 'und'
 WHERE job_id = ANY (:ids::text[]) AND starts_with(operation_key, 'agent-job-' || job_id || '/');

-- name: erase_tickets_of_user!
-- Those of jobs whose rows went before.
UPDATE tickets SET subject = '(erased)', body = '', category = 'erased', language = 'und', submitted_by = NULL
 WHERE tenant = :tenant AND submitted_by = :user AND created_at <= :until;

-- name: erase_audit_notes!
-- A statement of its own, after the jobs are marked: the trigger that allows this looks for the mark.
UPDATE audit_log SET note = '(erased)'
 WHERE tenant = :tenant AND target = ANY (:ids::text[]) AND note <> '(erased)';

-- name: not_ended_to_erase
-- Those that something is to be said to: live ones that nobody has cancelled yet, and dead ones without a word.
SELECT erasure_jobs.job_id, erasure_jobs.state
  FROM erasure_jobs LEFT JOIN dead_letters ON dead_letters.id = erasure_jobs.job_id
 WHERE erasure_jobs.erasure_id = :erasure_id AND erasure_jobs.finalized_at IS NULL
   AND CASE WHEN erasure_jobs.state = 'dead' THEN dead_letters.state = 'open'
            ELSE erasure_jobs.cancel_requested_at IS NULL END
 ORDER BY erasure_jobs.job_id LIMIT :batch;

-- name: complete_erasure$
-- Not while a transaction is open that wrote before a user's order: it may hold a job that nobody sees yet. (A day is
-- longer than any should be; and numbers of transactions begin anew in a restored copy.)
WITH completed AS (
    UPDATE erasures SET completed_at = now()
     WHERE id = :id AND completed_at IS NULL
       AND ("user" IS NULL OR ordered_in < pg_snapshot_xmin(pg_current_snapshot())
            OR created_at < now() - interval '1 day')
       AND NOT EXISTS (SELECT FROM erasure_jobs
                        WHERE erasure_id = erasures.id AND (erased_at IS NULL OR workflow_look_at IS NOT NULL))
    RETURNING *
), audited AS (
    INSERT INTO audit_log (tenant, actor, action, target, details)
    SELECT tenant, 'agentjobs', 'complete_erasure', coalesce("user", job_id), jsonb_build_object('erasure', id)
      FROM completed
)
SELECT EXISTS (SELECT FROM completed);

-- name: erasure_progress^
SELECT count(*)::integer AS jobs, count(*) FILTER (WHERE erased_at IS NOT NULL)::integer AS erased,
       count(*) FILTER (WHERE finalized_at IS NULL)::integer AS not_ended,
       count(*) FILTER (WHERE workflow_look_at IS NOT NULL)::integer AS workflows_left
  FROM erasure_jobs WHERE erasure_id = :id;

-- name: left_outside
-- What was done at destinations that are not ours, or may have been: the key is how it is called there.
SELECT effects.job_id, effects.step, effects.name AS tool, effects.key, effects.generation,
       effects.state, count(*) OVER () AS total
  FROM erasure_jobs JOIN effects ON effects.job_id = erasure_jobs.job_id
 WHERE erasure_jobs.erasure_id = :id AND effects.kind = 'tool'
   AND effects.effect_class NOT IN ('read_only', 'transactional')
   AND effects.state IN ('begun', 'completed', 'undone')
 ORDER BY effects.begun_at, effects.key LIMIT :limit;
