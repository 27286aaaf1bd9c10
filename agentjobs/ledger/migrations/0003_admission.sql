-- Admission to models: one row a model, shared by all workers, with its rate meters, its parking and its breaker.

CREATE TABLE model_admission (
    model text CONSTRAINT model_admission_pkey PRIMARY KEY
        CONSTRAINT model_admission_model_length CHECK (length(model) BETWEEN 1 AND 200),
    -- Meters (GCRA): when all that was admitted would be through at the steady rate.
    requests_until timestamptz NOT NULL DEFAULT now(),
    tokens_until timestamptz NOT NULL DEFAULT now(),
    tokens_per_minute bigint, -- as of the latest admission: what a call really used is corrected at this rate
    -- Where the next caller that is held back is told to come, and how long a call takes (a running mean).
    next_place_at timestamptz NOT NULL DEFAULT now(),
    call_seconds double precision NOT NULL DEFAULT 2
        CONSTRAINT model_admission_call_seconds_not_negative CHECK (call_seconds >= 0),
    parked_until timestamptz, -- the provider asked everybody to wait
    -- The breaker. NULL in open_until: closed. In the future: open. In the past: the next caller is the probe.
    failures integer NOT NULL DEFAULT 0 CONSTRAINT model_admission_failures_not_negative CHECK (failures >= 0),
    last_failure text,
    openings integer NOT NULL DEFAULT 0,
    open_until timestamptz,
    closed_at timestamptz NOT NULL DEFAULT now(),
    probe_attempt_id bigint, -- no reference: it is looked up only while its lease lasts
    probe_until timestamptz,
    CONSTRAINT model_admission_open_has_openings CHECK ((open_until IS NOT NULL) = (openings > 0)),
    CONSTRAINT model_admission_open_has_failures CHECK (open_until IS NULL OR (failures > 0 AND last_failure IS NOT NULL)),
    CONSTRAINT model_admission_probe_has_lease CHECK ((probe_attempt_id IS NULL) = (probe_until IS NULL)),
    CONSTRAINT model_admission_probe_only_when_open CHECK (probe_until IS NULL OR open_until IS NOT NULL)
) WITH (fillfactor = 50); -- room for updates in place: a busy model's row changes twice with every call

ALTER TABLE attempts
    ADD COLUMN admitted_at timestamptz,
    ADD COLUMN admitted_tokens bigint,
    ADD COLUMN reported_at timestamptz, -- what came of the call was told to its model's row: once
    ADD CONSTRAINT attempts_admitted_to_a_model CHECK (admitted_at IS NULL OR model IS NOT NULL),
    ADD CONSTRAINT attempts_admitted_with_tokens CHECK ((admitted_at IS NULL) = (admitted_tokens IS NULL)),
    ADD CONSTRAINT attempts_reported_was_admitted CHECK (reported_at IS NULL OR admitted_at IS NOT NULL);
CREATE INDEX attempts_in_flight ON attempts (model) WHERE outcome = 'running' AND admitted_at IS NOT NULL;

-- Calls in flight to the model, or (with an attempt) whether that one is. A function, and volatile, because it has to
-- see what was committed while its caller waited for the model's row: a statement's own subquery looks at the moment
-- at which the statement began, and two callers that waited would both find the last slot free.
CREATE FUNCTION calls_in_flight(to_model text, of_attempt bigint DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT count(*) FROM attempts
             WHERE model = to_model AND outcome = 'running' AND admitted_at IS NOT NULL
               AND (of_attempt IS NULL OR id = of_attempt));
END
$$;
