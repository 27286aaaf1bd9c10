-- name: only_one_sweeper$
-- The sweep is made by one relay at a time; the lock ends with the transaction, also when its relay dies.
SELECT pg_try_advisory_xact_lock(hashtext('agentjobs.retention'));

-- name: jobs_with_expired_content
-- Ended long enough ago. Never a live or a dead job: it may need every receipt.
SELECT id FROM jobs
 WHERE finalized_at < now() - :age::interval AND content_removed_at IS NULL
 ORDER BY finalized_at LIMIT :batch
   FOR NO KEY UPDATE SKIP LOCKED;

-- name: remove_content!
-- Of ended jobs, whose rows are locked: what somebody wrote, what was made of it, and what it can be recognised by.
-- That, when and how it was done stays. An effect without a fingerprint takes no late result.
WITH changes AS (
    DELETE FROM input_changes WHERE job_id = ANY (:ids::text[])
), done AS (
    UPDATE effects
       SET result = CASE WHEN result IS NOT NULL THEN '{}'::jsonb END, fingerprint = '',
           response_id = NULL, response_model = NULL
     WHERE job_id = ANY (:ids::text[])
), tried AS (
    UPDATE attempts SET message = NULL WHERE job_id = ANY (:ids::text[]) AND message IS NOT NULL
), written AS (
    UPDATE job_events SET data = data || '{"text": ""}'::jsonb
     WHERE job_id = ANY (:ids::text[]) AND type = 'text'
), letters AS (
    UPDATE dead_letters
       SET message = '(removed)', note = CASE WHEN note IS NOT NULL THEN '(removed)' END,
           effects_done = '[]', effects_in_doubt = '[]'
     WHERE id = ANY (:ids::text[])
), deaths_of_them AS (
    UPDATE deaths SET note = '(removed)' WHERE job_id = ANY (:ids::text[]) AND note IS NOT NULL
), approved AS (
    UPDATE approvals SET note = CASE WHEN note IS NOT NULL THEN '(removed)' END, fingerprint = ''
     WHERE job_id = ANY (:ids::text[])
)
UPDATE jobs
   SET input = '{"text": ""}', failure = NULL,
       result = CASE WHEN result IS NOT NULL THEN '{"answer": null, "plan": null, "effects": []}'::jsonb END,
       content_removed_at = coalesce(content_removed_at, now()), workflow_look_at = now()
 WHERE id = ANY (:ids::text[]) AND finalized_at IS NOT NULL;

-- name: claim_workflow_looks
-- Each is another relay's again when this one does not come back in time.
WITH next AS MATERIALIZED (
    SELECT id FROM jobs WHERE workflow_look_at <= now()
     ORDER BY workflow_look_at LIMIT :batch FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs SET workflow_look_at = now() + make_interval(secs => :lease_seconds::double precision)
  FROM next WHERE jobs.id = next.id
RETURNING jobs.id;

-- name: look_for_workflows_again!
UPDATE jobs SET workflow_look_at = now() + make_interval(secs => :wait_seconds::double precision)
 WHERE id = ANY (:ids::text[]) AND workflow_look_at IS NOT NULL;

-- name: workflows_are_gone!
UPDATE jobs SET workflow_look_at = NULL WHERE id = ANY (:ids::text[]);

-- name: expired_jobs
-- Nothing is left of them but their rows, and nobody needs these: their workflows are gone (so that no start that comes late
-- meets a free id), no word of theirs waits, and no bulk redrive counts them. An erased one answers for itself as long.
SELECT id FROM jobs
 WHERE content_removed_at IS NOT NULL AND workflow_look_at IS NULL
   AND finalized_at < now() - :age::interval
   AND (erased_at IS NULL OR erased_at < now() - :age::interval)
   AND NOT EXISTS (SELECT FROM outbox WHERE outbox.job_id = jobs.id)
   AND NOT EXISTS (SELECT FROM redrive_items WHERE redrive_items.job_id = jobs.id)
 ORDER BY finalized_at LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- name: sign_tickets!
-- A job's ticket outlives it: from here on it says itself whose words it holds.
UPDATE tickets SET submitted_by = jobs."user"
  FROM jobs
 WHERE jobs.id = ANY (:ids::text[]) AND tickets.job_id = jobs.id AND jobs.erased_at IS NULL
   AND starts_with(tickets.operation_key, 'agent-job-' || jobs.id || '/');

-- name: remove_jobs!
-- With all that refers to them, in one statement: references are checked at its end.
WITH keys AS (DELETE FROM idempotency_keys WHERE job_id = ANY (:ids::text[])),
     told AS (DELETE FROM alert_letters WHERE job_id = ANY (:ids::text[])),
     died AS (DELETE FROM deaths WHERE job_id = ANY (:ids::text[])),
     letters AS (DELETE FROM dead_letters WHERE id = ANY (:ids::text[])),
     approved AS (DELETE FROM approvals WHERE job_id = ANY (:ids::text[])),
     changes AS (DELETE FROM input_changes WHERE job_id = ANY (:ids::text[])),
     events AS (DELETE FROM job_events WHERE job_id = ANY (:ids::text[])),
     tried AS (DELETE FROM attempts WHERE job_id = ANY (:ids::text[])),
     done AS (DELETE FROM effects WHERE job_id = ANY (:ids::text[]))
DELETE FROM jobs WHERE id = ANY (:ids::text[]);

-- name: prune_redrives$
-- Bulk redrives that ended long ago, with the list of their letters. How many.
WITH old AS MATERIALIZED (
    SELECT id FROM redrives
     WHERE finished_at < now() - :age::interval
       AND NOT EXISTS (SELECT FROM outbox WHERE outbox.redrive_id = redrives.id)
     ORDER BY finished_at LIMIT :batch FOR UPDATE SKIP LOCKED
), items AS (
    DELETE FROM redrive_items USING old WHERE redrive_items.redrive_id = old.id
), gone AS (
    DELETE FROM redrives USING old WHERE redrives.id = old.id RETURNING redrives.id
)
SELECT count(*)::integer FROM gone;

-- name: prune_alerts$
-- Alerts of long ago, of whose letters none is left, and none of which is still on its way. How many.
WITH old AS MATERIALIZED (
    SELECT id FROM alerts
     WHERE created_at < now() - :age::interval
       AND NOT EXISTS (SELECT FROM alert_letters WHERE alert_letters.alert_id = alerts.id)
       AND NOT EXISTS (SELECT FROM alert_deliveries
                        WHERE alert_deliveries.alert_id = alerts.id AND alert_deliveries.state = 'waiting')
     ORDER BY created_at LIMIT :batch FOR UPDATE SKIP LOCKED
), delivered AS (
    DELETE FROM alert_deliveries USING old WHERE alert_deliveries.alert_id = old.id
), gone AS (
    DELETE FROM alerts USING old WHERE alerts.id = old.id RETURNING alerts.id
)
SELECT count(*)::integer FROM gone;
