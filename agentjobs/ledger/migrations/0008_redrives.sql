-- Bulk redrives: which dead letters one takes, how it proceeds, and where it stands. The letters are chosen once, at
-- acceptance. What became of each is not stored here: it is in `deaths`.

CREATE TABLE redrives (
    id text CONSTRAINT redrives_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT redrives_tenant_fkey REFERENCES tenants,
    created_by text NOT NULL,
    note text NOT NULL,
    filter jsonb NOT NULL,
    policy text NOT NULL CONSTRAINT redrives_policy_known CHECK (policy IN ('original', 'current')),
    again boolean NOT NULL,
    canary integer NOT NULL CONSTRAINT redrives_canary_positive CHECK (canary > 0),
    share double precision NOT NULL CONSTRAINT redrives_share_range CHECK (share > 0 AND share <= 1),
    rate_per_second double precision NOT NULL CONSTRAINT redrives_rate_positive CHECK (rate_per_second > 0),
    failure_limit double precision NOT NULL
        CONSTRAINT redrives_failure_limit_range CHECK (failure_limit BETWEEN 0 AND 1),
    verdict_seconds integer NOT NULL CONSTRAINT redrives_verdict_seconds_positive CHECK (verdict_seconds > 0),
    key text,
    fingerprint text NOT NULL,
    state text NOT NULL CONSTRAINT redrives_state_known CHECK (
        state IN ('awaiting_approval', 'running', 'paused', 'stopped', 'cancelled', 'completed')),
    letters integer NOT NULL,
    -- How many words were given so far. Raised under the row's lock: no two workers ever give one too many.
    asked integer NOT NULL DEFAULT 0,
    stopped_because text CONSTRAINT redrives_stopped_because_known CHECK (
        stopped_because IN ('canary_failed', 'too_many_failed', 'too_many_failed_lately')),
    needs_approval boolean NOT NULL,
    approved_by text,
    approved_at timestamptz,
    approval_note text,
    created_at timestamptz NOT NULL DEFAULT now(),
    looked_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT redrives_one_per_key UNIQUE (tenant, created_by, key),
    CONSTRAINT redrives_asked_range CHECK (asked BETWEEN 0 AND letters),
    CONSTRAINT redrives_stopped_has_reason CHECK ((stopped_because IS NOT NULL) = (state = 'stopped')),
    CONSTRAINT redrives_finished_exactly_when_final CHECK (
        (finished_at IS NOT NULL) = (state IN ('stopped', 'cancelled', 'completed'))),
    CONSTRAINT redrives_approved_by_a_second_person CHECK (approved_by IS NULL OR approved_by <> created_by),
    CONSTRAINT redrives_approved_exactly_with_time CHECK ((approved_by IS NOT NULL) = (approved_at IS NOT NULL)),
    CONSTRAINT redrives_nothing_before_approval CHECK (
        NOT needs_approval OR approved_by IS NOT NULL OR (state IN ('awaiting_approval', 'cancelled') AND asked = 0))
);
CREATE INDEX redrives_newest_first ON redrives (tenant, created_at DESC, id DESC);
CREATE INDEX redrives_running ON redrives (looked_at) WHERE state = 'running';

CREATE TABLE redrive_items (
    redrive_id text NOT NULL CONSTRAINT redrive_items_redrive_fkey REFERENCES redrives,
    job_id text NOT NULL CONSTRAINT redrive_items_job_fkey REFERENCES jobs,
    generation integer NOT NULL, -- the death that is meant: a later one is another matter
    place integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CONSTRAINT redrive_items_state_known CHECK (
        state IN ('waiting', 'asked', 'skipped')),
    asked_number integer, -- 1 is the first letter that was asked: the canary are the first few
    asked_at timestamptz,
    skipped_because text,
    claimed boolean NOT NULL DEFAULT true, -- until its bulk redrive has ended
    CONSTRAINT redrive_items_pkey PRIMARY KEY (redrive_id, job_id),
    CONSTRAINT redrive_items_asked_has_number CHECK (
        (asked_number IS NOT NULL) = (state = 'asked') AND (asked_at IS NOT NULL) = (state = 'asked')),
    CONSTRAINT redrive_items_skipped_has_reason CHECK ((skipped_because IS NOT NULL) = (state = 'skipped'))
);
-- A letter is in at most one bulk redrive that has not ended.
CREATE UNIQUE INDEX redrive_items_one_redrive_at_a_time ON redrive_items (job_id) WHERE claimed;
CREATE INDEX redrive_items_waiting ON redrive_items (redrive_id, place) WHERE state = 'waiting';
CREATE UNIQUE INDEX redrive_items_numbered_once ON redrive_items (redrive_id, asked_number);

-- A row of the outbox is about a job, or about a bulk redrive.
ALTER TABLE outbox
    ALTER COLUMN job_id DROP NOT NULL,
    ADD COLUMN redrive_id text CONSTRAINT outbox_redrive_fkey REFERENCES redrives,
    DROP CONSTRAINT outbox_topic_known,
    ADD CONSTRAINT outbox_topic_known CHECK (
        topic IN ('start_job', 'cancel_job', 'redrive_job', 'discard_job', 'job_died', 'call_redrive')),
    ADD CONSTRAINT outbox_about_one_thing CHECK (
        (redrive_id IS NOT NULL) = (topic = 'call_redrive') AND (job_id IS NOT NULL) = (topic <> 'call_redrive'));
CREATE INDEX outbox_redrives ON outbox (id) WHERE topic = 'call_redrive';
