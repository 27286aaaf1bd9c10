-- A dead job's input, before a reviewer corrected it. What an old input was is content, like the input itself.

CREATE TABLE input_changes (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT input_changes_pkey PRIMARY KEY,
    job_id text NOT NULL CONSTRAINT input_changes_job_fkey REFERENCES jobs,
    generation integer NOT NULL CONSTRAINT input_changes_generation_positive CHECK (generation > 0),
    old_input jsonb NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    note text NOT NULL
);
CREATE INDEX input_changes_of_job ON input_changes (job_id, generation);

-- "What happened to this letter" is the question that the audit log is asked most.
CREATE INDEX audit_log_by_target ON audit_log (tenant, target, id);
