-- Calls of tools that wait for a person. One row a request: a later one for the same step (after a redrive, or with other
-- arguments) has the next number. What was approved is just this call: its tool and its arguments, by their fingerprint.
CREATE TABLE approvals (
    effect_key text NOT NULL,
    number integer NOT NULL CONSTRAINT approvals_number_positive CHECK (number > 0),
    job_id text NOT NULL CONSTRAINT approvals_job_fkey REFERENCES jobs,
    tenant text NOT NULL,
    generation integer NOT NULL, -- how often the job had died before
    step text NOT NULL,
    tool text NOT NULL,
    fingerprint text NOT NULL,
    state text NOT NULL DEFAULT 'requested' CONSTRAINT approvals_state_known CHECK (
        state IN ('requested', 'approved', 'rejected', 'expired', 'used')),
    requested_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    decided_by text,
    note text,
    used_at timestamptz,
    CONSTRAINT approvals_pkey PRIMARY KEY (effect_key, number),
    CONSTRAINT approvals_decided_by_a_person CHECK (
        (decided_at IS NOT NULL) = (decided_by IS NOT NULL)
        AND (state NOT IN ('approved', 'rejected', 'used') OR decided_by IS NOT NULL)
        AND (state <> 'requested' OR decided_by IS NULL)),
    CONSTRAINT approvals_used_exactly_with_time CHECK ((used_at IS NOT NULL) = (state = 'used'))
);
CREATE INDEX approvals_of_job ON approvals (job_id);
CREATE INDEX approvals_wanted ON approvals (tenant, requested_at, job_id) WHERE state = 'requested';

ALTER TABLE outbox DROP CONSTRAINT outbox_topic_known;
ALTER TABLE outbox ADD CONSTRAINT outbox_topic_known CHECK (topic IN (
    'start_job', 'cancel_job', 'redrive_job', 'discard_job', 'job_died', 'call_redrive', 'approval_decided'));
