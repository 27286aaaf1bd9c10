-- Every death of a job, not only its latest: what became of it, and of the redrive that followed. The letter
-- (dead_letters) is what is open now; its generations are here.

CREATE TABLE deaths (
    job_id text NOT NULL CONSTRAINT deaths_job_fkey REFERENCES jobs,
    generation integer NOT NULL CONSTRAINT deaths_generation_positive CHECK (generation > 0),
    tenant text NOT NULL,
    agent text NOT NULL,
    policy_version text NOT NULL,
    category text NOT NULL,
    reason text NOT NULL,
    step text,
    worker text NOT NULL,
    worker_build text,
    died_at timestamptz NOT NULL DEFAULT now(),
    -- What a person (or retention) decided, and when it took effect.
    resolution text CONSTRAINT deaths_resolution_known CHECK (resolution IN ('redriven', 'discarded')),
    resolved_at timestamptz,
    resolved_by text,
    note text,
    -- What became of a redrive.
    outcome text CONSTRAINT deaths_outcome_known CHECK (outcome IN ('recovered', 'died_again', 'cancelled')),
    outcome_at timestamptz,
    CONSTRAINT deaths_pkey PRIMARY KEY (job_id, generation),
    CONSTRAINT deaths_resolved_exactly_when_decided CHECK ((resolution IS NOT NULL) = (resolved_at IS NOT NULL)),
    CONSTRAINT deaths_outcome_has_time CHECK ((outcome IS NOT NULL) = (outcome_at IS NOT NULL)),
    CONSTRAINT deaths_outcome_of_a_redrive CHECK (
        outcome IS NULL OR resolution IS NOT DISTINCT FROM 'redriven')
);
CREATE INDEX deaths_by_tenant ON deaths (tenant, died_at);
CREATE INDEX deaths_resolved ON deaths (tenant, resolved_at) WHERE resolved_at IS NOT NULL;

INSERT INTO deaths (job_id, generation, tenant, agent, policy_version, category, reason, step, worker, died_at,
                    resolution, resolved_at, resolved_by, note)
SELECT id, generation, tenant, agent, policy_version, category, reason, step, worker, died_at,
       CASE WHEN state IN ('redriven', 'discarded') THEN state END, resolved_at, resolved_by, note
  FROM dead_letters;

-- Which build a worker runs, and who submitted what died.
ALTER TABLE workers ADD COLUMN build text;
ALTER TABLE dead_letters ADD COLUMN worker_build text, ADD COLUMN submitted_by text;
UPDATE dead_letters SET submitted_by = jobs."user" FROM jobs WHERE jobs.id = dead_letters.id;

-- Whoever can write to the audit log can only add to it.
CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();
