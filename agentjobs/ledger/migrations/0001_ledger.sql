-- The ledger: the record of effects and of what users see. (Temporal's event history is the record of
-- control flow; neither is rebuilt from the other.)
--
-- How to read it. A job is accepted together with its outbox row. The relay turns outbox rows into workflow
-- starts and signals. Every outside effect of a job is a row of `effects`, begun before it is done and
-- completed with its receipt; every try of it is a row of `attempts`. A job that cannot go on has a row in
-- `dead_letters` under its own id. What happened to a job, in order, is in `job_events`; who did what, in
-- `audit_log`. Constraints have names and carry the rules.

CREATE TABLE tenants (
    id text CONSTRAINT tenants_pkey PRIMARY KEY
        CONSTRAINT tenants_id_is_safe CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    running_cap integer NOT NULL DEFAULT 200
        CONSTRAINT tenants_running_cap_positive CHECK (running_cap > 0),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Only the SHA-256 of a key is stored: the key has 256 random bits, so no slow hash is needed.
CREATE TABLE api_keys (
    id text CONSTRAINT api_keys_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT api_keys_tenant_fkey REFERENCES tenants,
    "user" text NOT NULL CONSTRAINT api_keys_user_is_safe CHECK ("user" ~ '^[A-Za-z0-9_-]{1,64}$'),
    roles text[] NOT NULL
        CONSTRAINT api_keys_roles_known CHECK (roles <@ ARRAY['submit', 'review', 'admin'] AND cardinality(roles) > 0),
    key_hash bytea NOT NULL CONSTRAINT api_keys_hash_unique UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant, created_at);

CREATE TABLE grants (
    tenant text NOT NULL CONSTRAINT grants_tenant_fkey REFERENCES tenants,
    "user" text NOT NULL,
    action text NOT NULL CONSTRAINT grants_action_form CHECK (action ~ '^[a-z_]{1,40}:[a-z_]{1,40}$'),
    granted_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT grants_pkey PRIMARY KEY (tenant, "user", action)
);

CREATE TABLE jobs (
    id text CONSTRAINT jobs_pkey PRIMARY KEY
        CONSTRAINT jobs_id_is_safe CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    tenant text NOT NULL CONSTRAINT jobs_tenant_fkey REFERENCES tenants,
    "user" text NOT NULL,
    agent text NOT NULL,
    policy_version text NOT NULL,
    origin text NOT NULL,
    input jsonb NOT NULL,
    priority smallint NOT NULL CONSTRAINT jobs_priority_range CHECK (priority BETWEEN 1 AND 5),
    budget_tokens bigint,
    budget_usd numeric(12, 6),
    deadline_seconds integer NOT NULL CONSTRAINT jobs_deadline_positive CHECK (deadline_seconds > 0),
    deadline_at timestamptz NOT NULL,

    state text NOT NULL DEFAULT 'pending',
    previous_state text,
    step text,
    attempt integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    failure jsonb,
    generation integer NOT NULL DEFAULT 0,
    result jsonb,

    -- Spent for certain, and held back for calls in flight (or of crashed attempts, whose cost is unknown).
    tokens_in bigint NOT NULL DEFAULT 0,
    tokens_out bigint NOT NULL DEFAULT 0,
    usd numeric(18, 9) NOT NULL DEFAULT 0,
    tokens_reserved bigint NOT NULL DEFAULT 0 CONSTRAINT jobs_tokens_reserved_not_negative CHECK (tokens_reserved >= 0),
    usd_reserved numeric(18, 9) NOT NULL DEFAULT 0 CONSTRAINT jobs_usd_reserved_not_negative CHECK (usd_reserved >= 0),

    event_seq integer NOT NULL DEFAULT 0,
    cancel_requested_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    dispatched_at timestamptz,
    started_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    finalized_at timestamptz,

    CONSTRAINT jobs_state_known CHECK (state IN (
        'pending', 'running', 'retry_wait', 'waiting_approval', 'succeeded', 'dead', 'cancelled', 'discarded')),
    -- The transition table of agentjobs/domain/states.py; previous_state is kept by the trigger below.
    CONSTRAINT jobs_transition_allowed CHECK (
        (previous_state IS NULL AND state = 'pending')
        OR (previous_state IS NOT NULL AND (previous_state, state) IN (
            ('pending', 'running'), ('pending', 'cancelled'), ('pending', 'dead'),
            ('running', 'retry_wait'), ('running', 'waiting_approval'), ('running', 'succeeded'),
            ('running', 'dead'), ('running', 'cancelled'),
            ('retry_wait', 'running'), ('retry_wait', 'succeeded'), ('retry_wait', 'dead'),
            ('retry_wait', 'cancelled'),
            ('waiting_approval', 'running'), ('waiting_approval', 'succeeded'), ('waiting_approval', 'dead'),
            ('waiting_approval', 'cancelled'),
            ('dead', 'running'), ('dead', 'discarded')))),
    CONSTRAINT jobs_finalized_exactly_when_final CHECK (
        (finalized_at IS NOT NULL) = (state IN ('succeeded', 'cancelled', 'discarded'))),
    CONSTRAINT jobs_next_attempt_exactly_in_retry_wait CHECK ((next_attempt_at IS NOT NULL) = (state = 'retry_wait')),
    CONSTRAINT jobs_dead_has_failure CHECK (state <> 'dead' OR failure IS NOT NULL),
    CONSTRAINT jobs_succeeded_has_result CHECK (state <> 'succeeded' OR result IS NOT NULL)
);
CREATE INDEX jobs_newest_first ON jobs (tenant, created_at DESC, id DESC);
-- What counts against a tenant's running cap.
CREATE INDEX jobs_dispatched_and_live ON jobs (tenant)
    WHERE dispatched_at IS NOT NULL AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval');

-- A CHECK sees one row version only, so the state before is kept in the row: whoever writes a state cannot
-- forget it, nor get past jobs_transition_allowed.
CREATE FUNCTION jobs_keep_previous_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.previous_state := OLD.state;
    RETURN NEW;
END
$$;
CREATE TRIGGER jobs_keep_previous_state BEFORE UPDATE OF state ON jobs
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION jobs_keep_previous_state();

CREATE TABLE idempotency_keys (
    tenant text NOT NULL,
    "user" text NOT NULL,
    operation text NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    job_id text NOT NULL CONSTRAINT idempotency_keys_job_fkey REFERENCES jobs,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, "user", operation, key)
);

-- Rows stand here until Temporal has taken what they ask for. They are claimed by lock, never by "id > last
-- seen": a row that commits late would be skipped for ever.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    topic text NOT NULL CONSTRAINT outbox_topic_known CHECK (
        topic IN ('start_job', 'cancel_job', 'redrive_job', 'discard_job', 'job_died')),
    job_id text NOT NULL CONSTRAINT outbox_job_fkey REFERENCES jobs,
    tenant text NOT NULL,
    priority smallint NOT NULL DEFAULT 3,
    payload jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    available_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text
);
CREATE INDEX outbox_starts ON outbox (tenant, priority, id) WHERE topic = 'start_job';
CREATE INDEX outbox_commands ON outbox (id) WHERE topic <> 'start_job';

CREATE TABLE effects (
    key text CONSTRAINT effects_pkey PRIMARY KEY,
    job_id text NOT NULL CONSTRAINT effects_job_fkey REFERENCES jobs,
    step text NOT NULL,
    kind text NOT NULL CONSTRAINT effects_kind_known CHECK (kind IN ('model', 'tool', 'undo')),
    name text NOT NULL,
    effect_class text NOT NULL CONSTRAINT effects_class_known CHECK (
        effect_class IN ('read_only', 'transactional', 'idempotent', 'reconcilable', 'unsafe')),
    fingerprint text NOT NULL,
    state text NOT NULL DEFAULT 'begun' CONSTRAINT effects_state_known CHECK (
        state IN ('begun', 'released', 'completed', 'abandoned', 'undone')),
    in_doubt boolean NOT NULL DEFAULT false,
    begun_count integer NOT NULL DEFAULT 1,
    -- Raised only by a person's explicit word that an effect in doubt is to be had again: then its key at the
    -- destination is another one.
    generation integer NOT NULL DEFAULT 1 CONSTRAINT effects_generation_positive CHECK (generation > 0),
    result jsonb,
    begun_at timestamptz NOT NULL DEFAULT now(),
    sent_at timestamptz NOT NULL DEFAULT now(), -- when the last call that may have had the effect could begin
    completed_at timestamptz,
    CONSTRAINT effects_receipt_exactly_when_done CHECK (
        (completed_at IS NOT NULL) = (state IN ('completed', 'undone'))
        AND (result IS NOT NULL) = (state IN ('completed', 'undone')))
);
CREATE INDEX effects_of_job ON effects (job_id, begun_at);

CREATE TABLE attempts (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT attempts_pkey PRIMARY KEY,
    job_id text NOT NULL CONSTRAINT attempts_job_fkey REFERENCES jobs,
    step text NOT NULL,
    effect_key text NOT NULL, -- no reference: an attempt that was refused has begun no effect
    run_id text NOT NULL,
    attempt integer NOT NULL,
    worker text NOT NULL,
    outcome text NOT NULL DEFAULT 'running' CONSTRAINT attempts_outcome_known CHECK (
        outcome IN ('running', 'succeeded', 'failed', 'crashed')),
    category text,
    message text,
    wait_seconds double precision,
    next_attempt_at timestamptz,
    model text,
    tokens_in bigint NOT NULL DEFAULT 0,
    tokens_out bigint NOT NULL DEFAULT 0,
    usd numeric(18, 9) NOT NULL DEFAULT 0,
    tokens_reserved bigint NOT NULL DEFAULT 0,
    usd_reserved numeric(18, 9) NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT attempts_finished_exactly_when_over CHECK ((finished_at IS NOT NULL) = (outcome <> 'running')),
    CONSTRAINT attempts_failure_has_category CHECK ((category IS NOT NULL) = (outcome = 'failed'))
);
CREATE INDEX attempts_of_job ON attempts (job_id, id);
CREATE INDEX attempts_running ON attempts (effect_key) WHERE outcome = 'running';
CREATE INDEX attempts_by_worker ON attempts (worker, job_id);

-- A worker holds the advisory lock of its number as long as its session lives: a killed one loses it within
-- milliseconds. Marked lost, it is fenced: nothing that it began may be completed by it any more.
CREATE SEQUENCE worker_numbers AS integer;
CREATE TABLE workers (
    id text CONSTRAINT workers_pkey PRIMARY KEY,
    number integer NOT NULL CONSTRAINT workers_number_unique UNIQUE,
    identity text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    stopped_at timestamptz,
    lost_at timestamptz,
    taken_over_at timestamptz
);
CREATE INDEX workers_present ON workers (number) WHERE stopped_at IS NULL AND taken_over_at IS NULL;

-- One letter a job, under the job's id; its generation counts the deaths.
CREATE TABLE dead_letters (
    id text CONSTRAINT dead_letters_pkey PRIMARY KEY CONSTRAINT dead_letters_job_fkey REFERENCES jobs,
    tenant text NOT NULL,
    generation integer NOT NULL CONSTRAINT dead_letters_generation_positive CHECK (generation > 0),
    state text NOT NULL DEFAULT 'open' CONSTRAINT dead_letters_state_known CHECK (
        state IN ('open', 'redrive_requested', 'redriven', 'discard_requested', 'discarded')),
    category text NOT NULL,
    reason text NOT NULL,
    message text NOT NULL,
    step text,
    agent text NOT NULL,
    policy_version text NOT NULL,
    worker text NOT NULL,
    origin text NOT NULL,
    review_id text NOT NULL,
    attempts integer NOT NULL,
    effects_done jsonb NOT NULL,
    effects_in_doubt jsonb NOT NULL,
    died_at timestamptz NOT NULL DEFAULT now(),
    alerted_at timestamptz,
    resolved_at timestamptz,
    resolved_by text,
    note text,
    CONSTRAINT dead_letters_resolved_exactly_when_closed CHECK (
        (resolved_at IS NOT NULL) = (state IN ('redriven', 'discarded')))
);
CREATE INDEX dead_letters_by_tenant ON dead_letters (tenant, died_at DESC, id DESC);

-- `seq` counts from 1 within a job without gaps: it is drawn from the job's own row under its lock.
CREATE TABLE job_events (
    job_id text NOT NULL CONSTRAINT job_events_job_fkey REFERENCES jobs,
    seq integer NOT NULL,
    type text NOT NULL,
    data jsonb NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT job_events_pkey PRIMARY KEY (job_id, seq)
);

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT audit_log_pkey PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    tenant text NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    note text
);
CREATE INDEX audit_log_by_tenant ON audit_log (tenant, id);

-- The built-in tracker's tickets. One ticket per operation key, whoever sends it and however often.
CREATE TABLE tickets (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT tickets_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT tickets_tenant_fkey REFERENCES tenants,
    operation_key text NOT NULL CONSTRAINT tickets_one_per_operation UNIQUE,
    job_id text NOT NULL,
    subject text NOT NULL CONSTRAINT tickets_subject_not_blank CHECK (subject ~ '\S'),
    body text NOT NULL,
    category text NOT NULL,
    urgency text NOT NULL,
    language text NOT NULL,
    state text NOT NULL DEFAULT 'open' CONSTRAINT tickets_state_known CHECK (state IN ('open', 'closed')),
    created_at timestamptz NOT NULL DEFAULT now(),
    closed_at timestamptz,
    -- 'simple': requests come in many languages, and stemming by the wrong one hides words.
    search tsvector GENERATED ALWAYS AS (to_tsvector('simple', subject || ' ' || body)) STORED,
    CONSTRAINT tickets_closed_exactly_when_closed CHECK ((closed_at IS NOT NULL) = (state = 'closed'))
);
CREATE INDEX tickets_search ON tickets USING gin (search);
CREATE INDEX tickets_of_tenant ON tickets (tenant, id);
