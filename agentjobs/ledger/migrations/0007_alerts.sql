-- Alerts that arrive: what is told, about which deaths, by which ways, and how far each way has come.

CREATE TABLE alerts (
    -- Made by us and unguessable; the webhook-id of every attempt to deliver it.
    id text CONSTRAINT alerts_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT alerts_tenant_fkey REFERENCES tenants,
    kind text NOT NULL CONSTRAINT alerts_kind_known CHECK (
        kind IN ('job.died', 'jobs.died', 'dead_letters.escalated', 'dead_letters.discarding')),
    -- Which age was passed, from 1; beyond the last one: retention met an effect in doubt. 0: no escalation.
    level integer NOT NULL DEFAULT 0,
    reason text NOT NULL,
    agent text NOT NULL,
    letter_count integer NOT NULL CONSTRAINT alerts_letter_count_positive CHECK (letter_count > 0),
    in_doubt_count integer NOT NULL,
    first_died_at timestamptz NOT NULL,
    last_died_at timestamptz NOT NULL,
    -- Some of the letters, oldest first: an alert stays short, also about thousands.
    shown_ids text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alerts_level_of_escalations CHECK ((level > 0) = (kind = 'dead_letters.escalated')),
    CONSTRAINT alerts_single_has_one CHECK (kind <> 'job.died' OR letter_count = 1)
);
CREATE INDEX alerts_by_tenant ON alerts (tenant, created_at);

-- Which deaths an alert is about. A death is told once, escalated once a level, announced once.
CREATE TABLE alert_letters (
    alert_id text NOT NULL CONSTRAINT alert_letters_alert_fkey REFERENCES alerts,
    job_id text NOT NULL CONSTRAINT alert_letters_job_fkey REFERENCES jobs,
    generation integer NOT NULL,
    topic text NOT NULL CONSTRAINT alert_letters_topic_known CHECK (topic IN ('died', 'escalated', 'discarding')),
    level integer NOT NULL,
    CONSTRAINT alert_letters_pkey PRIMARY KEY (job_id, generation, topic, level)
);
CREATE INDEX alert_letters_by_alert ON alert_letters (alert_id);

-- How far an alert has come on each way.
CREATE TABLE alert_deliveries (
    alert_id text NOT NULL CONSTRAINT alert_deliveries_alert_fkey REFERENCES alerts,
    sink text NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CONSTRAINT alert_deliveries_state_known CHECK (
        state IN ('waiting', 'delivered', 'given_up', 'disabled')),
    attempts integer NOT NULL DEFAULT 0,
    last_status integer, -- of HTTP, where it has one
    last_error text, -- what kind of failure, never the other side's words
    receipt text, -- what the other side calls it, such as the number of an incident
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alert_deliveries_pkey PRIMARY KEY (alert_id, sink),
    CONSTRAINT alert_deliveries_time_exactly_when_delivered CHECK ((delivered_at IS NOT NULL) = (state = 'delivered'))
);
CREATE INDEX alert_deliveries_waiting ON alert_deliveries (next_attempt_at) WHERE state = 'waiting';

-- What holds for a way as a whole: it asked us to slow down, or to stop for good.
CREATE TABLE alert_sinks (
    sink text CONSTRAINT alert_sinks_pkey PRIMARY KEY,
    throttled_until timestamptz,
    disabled_at timestamptz
);

-- One incident a group and day, however many alerts speak of it.
CREATE TABLE alert_incidents (
    key text CONSTRAINT alert_incidents_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT alert_incidents_tenant_fkey REFERENCES tenants,
    begun_at timestamptz NOT NULL DEFAULT now(),
    receipt text,
    opened_at timestamptz,
    CONSTRAINT alert_incidents_opened_exactly_with_receipt CHECK ((receipt IS NOT NULL) = (opened_at IS NOT NULL))
);

-- When each desk last looked at its tenant's letters: one that has gone is told by the letters that it left.
CREATE TABLE alert_desks (
    tenant text CONSTRAINT alert_desks_pkey PRIMARY KEY CONSTRAINT alert_desks_tenant_fkey REFERENCES tenants,
    looked_at timestamptz NOT NULL
);

CREATE INDEX dead_letters_open_by_age ON dead_letters (tenant, died_at) WHERE state = 'open';
