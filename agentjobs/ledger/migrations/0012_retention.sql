-- What is kept no longer than it is needed, and what is erased on request (docs/retention.md).

-- A job's content is what somebody wrote and what was made of it. It goes first; the row that says that there was a job
-- goes later, and takes the idempotency key with it. An erased job's row answers for the job that it is gone.
ALTER TABLE jobs
    ADD COLUMN content_removed_at timestamptz,
    ADD COLUMN erased_at timestamptz,
    -- When to look for what is left of its workflow. NULL once nothing is, and before its content is removed.
    ADD COLUMN workflow_look_at timestamptz,
    ADD CONSTRAINT jobs_content_removed_when_final CHECK (content_removed_at IS NULL OR finalized_at IS NOT NULL),
    ADD CONSTRAINT jobs_erased_without_content CHECK (erased_at IS NULL OR content_removed_at IS NOT NULL),
    ADD CONSTRAINT jobs_workflow_looked_for_without_content CHECK (
        workflow_look_at IS NULL OR content_removed_at IS NOT NULL);
CREATE INDEX jobs_with_content ON jobs (finalized_at) WHERE finalized_at IS NOT NULL AND content_removed_at IS NULL;
CREATE INDEX jobs_without_content ON jobs (finalized_at) WHERE content_removed_at IS NOT NULL;
CREATE INDEX jobs_workflow_left ON jobs (workflow_look_at) WHERE workflow_look_at IS NOT NULL;

-- By these a job's rows are found when it goes.
CREATE INDEX idempotency_keys_of_job ON idempotency_keys (job_id);
CREATE INDEX redrive_items_of_job ON redrive_items (job_id);
CREATE INDEX tickets_of_job ON tickets (job_id);

-- A ticket outlives its job. Then this alone says whose words it holds, should they be erased.
ALTER TABLE tickets ADD COLUMN submitted_by text;
CREATE INDEX tickets_of_user ON tickets (tenant, submitted_by) WHERE submitted_by IS NOT NULL;

-- Somebody's order to erase one job, or all jobs that a user had submitted until then.
CREATE TABLE erasures (
    id text CONSTRAINT erasures_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT erasures_tenant_fkey REFERENCES tenants,
    "user" text,
    job_id text, -- no reference: the order outlives the job's row
    requested_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    ordered_in xid8 NOT NULL DEFAULT pg_current_xact_id(),
    looked_at timestamptz NOT NULL DEFAULT '-infinity',
    completed_at timestamptz,
    CONSTRAINT erasures_of_one_thing CHECK (num_nonnulls("user", job_id) = 1)
);
CREATE INDEX erasures_under_way ON erasures (looked_at) WHERE completed_at IS NULL;
CREATE INDEX erasures_of_job ON erasures (job_id) WHERE job_id IS NOT NULL;

-- Which jobs an order is about. (Two branches, so that each goes by its own index.)
CREATE VIEW erasure_jobs AS
SELECT erasures.id AS erasure_id, jobs.id AS job_id, jobs.state, jobs.created_at, jobs.finalized_at, jobs.erased_at,
       jobs.cancel_requested_at, jobs.workflow_look_at
  FROM erasures JOIN jobs ON jobs.id = erasures.job_id AND jobs.tenant = erasures.tenant
UNION ALL
SELECT erasures.id, jobs.id, jobs.state, jobs.created_at, jobs.finalized_at, jobs.erased_at,
       jobs.cancel_requested_at, jobs.workflow_look_at
  FROM erasures JOIN jobs
    ON jobs.tenant = erasures.tenant AND jobs."user" = erasures."user" AND jobs.created_at <= erasures.created_at;

-- The audit log stays append-only, with one exception: a person's note on a job may quote the request, so the note (and
-- nothing else of the row) goes with an erased job.
CREATE FUNCTION audit_log_loses_only_notes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.note IS NOT NULL AND NEW.note = '(erased)' AND to_jsonb(NEW) - 'note' = to_jsonb(OLD) - 'note'
       AND EXISTS (SELECT FROM jobs WHERE id = OLD.target AND tenant = OLD.tenant AND erased_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;
DROP TRIGGER audit_log_append_only ON audit_log;
CREATE TRIGGER audit_log_append_only BEFORE DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();
CREATE TRIGGER audit_log_loses_only_notes BEFORE UPDATE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION audit_log_loses_only_notes();
