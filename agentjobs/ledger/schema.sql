-- The schema of the ledger, as the migrations lead to it: to be read, not to be run on a database in use.
-- Why it is so, migrations/0001_ledger.sql says. Written by `python -m tests.ledger.documented_schema`;
-- tests/ledger/test_schema.py fails when it differs from what the migrations make.

CREATE FUNCTION public.admit(of_tenant text, of_user text, of_key text, of_fingerprint text, of_job text, of_tokens bigint, of_usd numeric, of_steps integer, in_flight integer, per_minute integer, queue_length integer) RETURNS TABLE(refused text, at_most integer, in_use integer, wait_seconds integer, quotas jsonb)
    LANGUAGE plpgsql
    AS $$
DECLARE
    beside CONSTANT integer := current_setting('max_connections');
BEGIN
    -- From here on the transaction has a number, also while it waits below: an order to erase what the user has submitted
    -- is not complete before it has ended.
    PERFORM pg_current_xact_id();
    IF of_key IS NOT NULL THEN
        INSERT INTO idempotency_keys (tenant, "user", operation, key, fingerprint, job_id,
                                      budget_tokens, budget_usd, budget_steps)
        VALUES (of_tenant, of_user, 'submit', of_key, of_fingerprint, of_job, of_tokens, of_usd, of_steps)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    quotas := '[]';
    FOR refused, at_most IN
        SELECT l.quota, l.at_most FROM quota_limits(of_tenant, in_flight, per_minute, queue_length) AS l
         WHERE l.at_most IS NOT NULL
    LOOP
        in_use := NULL;
        IF at_most > beside THEN
            in_use := quota_in_use(refused, of_tenant, of_user, at_most);
        END IF;
        -- No more transactions than connections can be in flight beside this one. Where there is room for a job of
        -- each, nobody need wait for anybody.
        IF in_use IS NULL OR in_use + beside > at_most THEN
            PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(
                ' ', 'agentjobs.quota', refused, of_tenant, CASE WHEN refused <> 'queue_length' THEN of_user END), 0));
            in_use := quota_in_use(refused, of_tenant, of_user, at_most);
        END IF;
        IF in_use >= at_most THEN
            DELETE FROM idempotency_keys
             WHERE tenant = of_tenant AND "user" = of_user AND operation = 'submit' AND key = of_key;
            IF refused = 'per_minute' THEN
                SELECT greatest(1, ceil(extract(
                           epoch FROM created_at + interval '60 seconds' - clock_timestamp())))::integer
                  INTO wait_seconds FROM jobs
                 WHERE tenant = of_tenant AND "user" = of_user AND created_at > now() - interval '60 seconds'
                 ORDER BY created_at DESC OFFSET at_most - 1 LIMIT 1;
            END IF;
            quotas := NULL;
            RETURN NEXT;
            RETURN;
        END IF;
        quotas := quotas || jsonb_build_object('quota', refused, 'limit', at_most, 'in_use', in_use + 1);
    END LOOP;
    refused := NULL;
    RETURN NEXT;
END
$$;

CREATE FUNCTION public.audit_log_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.audit_log_loses_only_notes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.note IS NOT NULL AND NEW.note = '(erased)' AND to_jsonb(NEW) - 'note' = to_jsonb(OLD) - 'note'
       AND EXISTS (SELECT FROM jobs WHERE id = OLD.target AND tenant = OLD.tenant AND erased_at IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.calls_in_flight(to_model text, of_attempt bigint DEFAULT NULL::bigint) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (SELECT count(*) FROM attempts
             WHERE model = to_model AND outcome = 'running' AND admitted_at IS NOT NULL
               AND (of_attempt IS NULL OR id = of_attempt));
END
$$;

CREATE FUNCTION public.job_events_ring() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (CASE WHEN pg_try_advisory_lock(24939, 0) THEN NOT pg_advisory_unlock(24939, 0)
             ELSE pg_try_advisory_xact_lock(24939, 1) END) THEN
        PERFORM pg_notify('agentjobs_events', '');
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION public.job_may_move(before text, after text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN CASE before
        WHEN 'pending' THEN after IN ('running', 'cancelled', 'dead')
        WHEN 'running' THEN after IN ('retry_wait', 'waiting_approval', 'succeeded', 'dead', 'cancelled')
        WHEN 'retry_wait' THEN after IN ('running', 'succeeded', 'dead', 'cancelled')
        WHEN 'waiting_approval' THEN after IN ('running', 'succeeded', 'dead', 'cancelled')
        WHEN 'dead' THEN after IN ('running', 'discarded')
        ELSE before IS NULL AND after = 'pending' END;
END
$$;

CREATE FUNCTION public.jobs_keep_previous_state() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.previous_state := OLD.state;
    RETURN NEW;
END
$$;

CREATE FUNCTION public.jobs_tell_webhooks() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO webhook_deliveries (webhook_id, type, job_id, data)
    SELECT id, 'job.' || NEW.state, NEW.id,
           jsonb_strip_nulls(jsonb_build_object(
               'id', NEW.id, 'state', NEW.state, 'agent', NEW.agent, 'generation', NEW.generation,
               'reason', NEW.failure ->> 'reason'))
      FROM webhooks
     WHERE tenant = NEW.tenant AND disabled_at IS NULL AND 'job.' || NEW.state = ANY (types)
       FOR KEY SHARE;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.quota_in_use(quota text, of_tenant text, of_user text, up_to integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
    CASE quota
    WHEN 'queue_length' THEN
        RETURN (SELECT count(*) FROM (
            SELECT FROM jobs WHERE tenant = of_tenant AND state = 'pending' AND dispatched_at IS NULL
             LIMIT up_to) AS counted);
    WHEN 'per_minute' THEN
        RETURN (SELECT count(*) FROM (
            SELECT FROM jobs
             WHERE tenant = of_tenant AND "user" = of_user AND created_at > now() - interval '60 seconds'
             LIMIT up_to) AS counted);
    WHEN 'in_flight' THEN
        RETURN (SELECT count(*) FROM (
            SELECT FROM jobs
             WHERE tenant = of_tenant AND "user" = of_user
               AND state IN ('pending', 'running', 'retry_wait', 'waiting_approval')
             LIMIT up_to) AS counted);
    END CASE;
END
$$;

CREATE FUNCTION public.quota_limits(of_tenant text, in_flight integer, per_minute integer, queue_length integer) RETURNS TABLE(quota text, at_most integer)
    LANGUAGE sql STABLE
    AS $$
    SELECT named.quota, nullif(coalesce(named.own, named.installation), 0)
      FROM tenants CROSS JOIN LATERAL (VALUES
           (1, 'queue_length', tenants.quota_queue_length, queue_length),
           (2, 'per_minute', tenants.quota_per_minute, per_minute),
           (3, 'in_flight', tenants.quota_in_flight, in_flight)) AS named (place, quota, own, installation)
     WHERE tenants.id = of_tenant
     ORDER BY named.place
$$;

CREATE FUNCTION public.quota_uses(of_tenant text, of_user text, in_flight integer, per_minute integer, queue_length integer) RETURNS jsonb
    LANGUAGE sql
    AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'quota', quota, 'limit', at_most, 'in_use', quota_in_use(quota, of_tenant, of_user, NULL))), '[]')
      FROM quota_limits(of_tenant, in_flight, per_minute, queue_length)
$$;

CREATE TABLE public.alert_deliveries (
    alert_id text NOT NULL,
    sink text NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_status integer,
    last_error text,
    receipt text,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL,
    delivered_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT alert_deliveries_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'given_up'::text, 'disabled'::text]))),
    CONSTRAINT alert_deliveries_time_exactly_when_delivered CHECK (((delivered_at IS NOT NULL) = (state = 'delivered'::text)))
);

CREATE TABLE public.alert_desks (
    tenant text NOT NULL,
    looked_at timestamp with time zone NOT NULL
);

CREATE TABLE public.alert_incidents (
    key text NOT NULL,
    tenant text NOT NULL,
    begun_at timestamp with time zone DEFAULT now() NOT NULL,
    receipt text,
    opened_at timestamp with time zone,
    CONSTRAINT alert_incidents_opened_exactly_with_receipt CHECK (((receipt IS NOT NULL) = (opened_at IS NOT NULL)))
);

CREATE TABLE public.alert_letters (
    alert_id text NOT NULL,
    job_id text NOT NULL,
    generation integer NOT NULL,
    topic text NOT NULL,
    level integer NOT NULL,
    CONSTRAINT alert_letters_topic_known CHECK ((topic = ANY (ARRAY['died'::text, 'escalated'::text, 'discarding'::text])))
);

CREATE TABLE public.alert_sinks (
    sink text NOT NULL,
    throttled_until timestamp with time zone,
    disabled_at timestamp with time zone
);

CREATE TABLE public.alerts (
    id text NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    level integer DEFAULT 0 NOT NULL,
    reason text NOT NULL,
    agent text NOT NULL,
    letter_count integer NOT NULL,
    in_doubt_count integer NOT NULL,
    first_died_at timestamp with time zone NOT NULL,
    last_died_at timestamp with time zone NOT NULL,
    shown_ids text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT alerts_kind_known CHECK ((kind = ANY (ARRAY['job.died'::text, 'jobs.died'::text, 'dead_letters.escalated'::text, 'dead_letters.discarding'::text, 'approval.requested'::text, 'approvals.requested'::text]))),
    CONSTRAINT alerts_letter_count_positive CHECK ((letter_count > 0)),
    CONSTRAINT alerts_level_of_escalations CHECK (((level > 0) = (kind = 'dead_letters.escalated'::text))),
    CONSTRAINT alerts_single_has_one CHECK (((kind <> ALL (ARRAY['job.died'::text, 'approval.requested'::text])) OR (letter_count = 1)))
);

CREATE TABLE public.api_keys (
    id text NOT NULL,
    tenant text NOT NULL,
    "user" text NOT NULL,
    roles text[] NOT NULL,
    key_hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_keys_roles_known CHECK (((roles <@ ARRAY['submit'::text, 'review'::text, 'admin'::text]) AND (cardinality(roles) > 0))),
    CONSTRAINT api_keys_user_is_safe CHECK (("user" ~ '^[A-Za-z0-9_-]{1,64}$'::text))
);

CREATE TABLE public.approvals (
    effect_key text NOT NULL,
    number integer NOT NULL,
    job_id text NOT NULL,
    tenant text NOT NULL,
    generation integer NOT NULL,
    step text NOT NULL,
    tool text NOT NULL,
    fingerprint text NOT NULL,
    state text DEFAULT 'requested'::text NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    decided_by text,
    note text,
    used_at timestamp with time zone,
    alerted_at timestamp with time zone,
    CONSTRAINT approvals_decided_by_a_person CHECK ((((decided_at IS NOT NULL) = (decided_by IS NOT NULL)) AND ((state <> ALL (ARRAY['approved'::text, 'rejected'::text, 'used'::text])) OR (decided_by IS NOT NULL)) AND ((state <> 'requested'::text) OR (decided_by IS NULL)))),
    CONSTRAINT approvals_number_positive CHECK ((number > 0)),
    CONSTRAINT approvals_state_known CHECK ((state = ANY (ARRAY['requested'::text, 'approved'::text, 'rejected'::text, 'expired'::text, 'used'::text]))),
    CONSTRAINT approvals_used_exactly_with_time CHECK (((used_at IS NOT NULL) = (state = 'used'::text)))
);

CREATE TABLE public.attempts (
    id bigint NOT NULL,
    job_id text NOT NULL,
    step text NOT NULL,
    effect_key text NOT NULL,
    run_id text NOT NULL,
    attempt integer NOT NULL,
    worker text NOT NULL,
    outcome text DEFAULT 'running'::text NOT NULL,
    category text,
    message text,
    wait_seconds double precision,
    next_attempt_at timestamp with time zone,
    model text,
    tokens_in bigint DEFAULT 0 NOT NULL,
    tokens_out bigint DEFAULT 0 NOT NULL,
    usd numeric(18,9) DEFAULT 0 NOT NULL,
    tokens_reserved bigint DEFAULT 0 NOT NULL,
    usd_reserved numeric(18,9) DEFAULT 0 NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    budget_month date,
    admitted_at timestamp with time zone,
    admitted_tokens bigint,
    reported_at timestamp with time zone,
    CONSTRAINT attempts_admitted_to_a_model CHECK (((admitted_at IS NULL) OR (model IS NOT NULL))),
    CONSTRAINT attempts_admitted_with_tokens CHECK (((admitted_at IS NULL) = (admitted_tokens IS NULL))),
    CONSTRAINT attempts_failure_has_category CHECK (((category IS NOT NULL) = (outcome = 'failed'::text))),
    CONSTRAINT attempts_finished_exactly_when_over CHECK (((finished_at IS NOT NULL) = (outcome <> 'running'::text))),
    CONSTRAINT attempts_outcome_known CHECK ((outcome = ANY (ARRAY['running'::text, 'succeeded'::text, 'failed'::text, 'crashed'::text, 'abandoned'::text]))),
    CONSTRAINT attempts_reported_was_admitted CHECK (((reported_at IS NULL) OR (admitted_at IS NOT NULL)))
);

ALTER TABLE public.attempts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    tenant text NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    note text,
    details jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.dead_letters (
    id text NOT NULL,
    tenant text NOT NULL,
    generation integer NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
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
    died_at timestamp with time zone DEFAULT now() NOT NULL,
    alerted_at timestamp with time zone,
    resolved_at timestamp with time zone,
    resolved_by text,
    note text,
    worker_build text,
    submitted_by text,
    CONSTRAINT dead_letters_generation_positive CHECK ((generation > 0)),
    CONSTRAINT dead_letters_resolved_exactly_when_closed CHECK (((resolved_at IS NOT NULL) = (state = ANY (ARRAY['redriven'::text, 'discarded'::text])))),
    CONSTRAINT dead_letters_state_known CHECK ((state = ANY (ARRAY['open'::text, 'redrive_requested'::text, 'redriven'::text, 'discard_requested'::text, 'discarded'::text])))
);

CREATE TABLE public.deaths (
    job_id text NOT NULL,
    generation integer NOT NULL,
    tenant text NOT NULL,
    agent text NOT NULL,
    policy_version text NOT NULL,
    category text NOT NULL,
    reason text NOT NULL,
    step text,
    worker text NOT NULL,
    worker_build text,
    died_at timestamp with time zone DEFAULT now() NOT NULL,
    resolution text,
    resolved_at timestamp with time zone,
    resolved_by text,
    note text,
    outcome text,
    outcome_at timestamp with time zone,
    CONSTRAINT deaths_generation_positive CHECK ((generation > 0)),
    CONSTRAINT deaths_outcome_has_time CHECK (((outcome IS NOT NULL) = (outcome_at IS NOT NULL))),
    CONSTRAINT deaths_outcome_known CHECK ((outcome = ANY (ARRAY['recovered'::text, 'died_again'::text, 'cancelled'::text]))),
    CONSTRAINT deaths_outcome_of_a_redrive CHECK (((outcome IS NULL) OR (NOT (resolution IS DISTINCT FROM 'redriven'::text)))),
    CONSTRAINT deaths_resolution_known CHECK ((resolution = ANY (ARRAY['redriven'::text, 'discarded'::text]))),
    CONSTRAINT deaths_resolved_exactly_when_decided CHECK (((resolution IS NOT NULL) = (resolved_at IS NOT NULL)))
);

CREATE TABLE public.effects (
    key text NOT NULL,
    job_id text NOT NULL,
    step text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    effect_class text NOT NULL,
    fingerprint text NOT NULL,
    state text DEFAULT 'begun'::text NOT NULL,
    in_doubt boolean DEFAULT false NOT NULL,
    begun_count integer DEFAULT 1 NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    result jsonb,
    begun_at timestamp with time zone DEFAULT now() NOT NULL,
    sent_at timestamp with time zone DEFAULT now() NOT NULL,
    completed_at timestamp with time zone,
    response_id text,
    response_model text,
    CONSTRAINT effects_class_known CHECK ((effect_class = ANY (ARRAY['read_only'::text, 'transactional'::text, 'idempotent'::text, 'reconcilable'::text, 'unsafe'::text]))),
    CONSTRAINT effects_generation_positive CHECK ((generation > 0)),
    CONSTRAINT effects_kind_known CHECK ((kind = ANY (ARRAY['model'::text, 'tool'::text, 'undo'::text]))),
    CONSTRAINT effects_receipt_exactly_when_done CHECK ((((completed_at IS NOT NULL) = (state = ANY (ARRAY['completed'::text, 'undone'::text]))) AND ((result IS NOT NULL) = (state = ANY (ARRAY['completed'::text, 'undone'::text]))))),
    CONSTRAINT effects_response_has_model CHECK (((response_id IS NULL) = (response_model IS NULL))),
    CONSTRAINT effects_state_known CHECK ((state = ANY (ARRAY['begun'::text, 'released'::text, 'completed'::text, 'abandoned'::text, 'undone'::text])))
);

CREATE TABLE public.erasures (
    id text NOT NULL,
    tenant text NOT NULL,
    "user" text,
    job_id text,
    requested_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ordered_in xid8 DEFAULT pg_current_xact_id() NOT NULL,
    looked_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    CONSTRAINT erasures_of_one_thing CHECK ((num_nonnulls("user", job_id) = 1))
);

CREATE TABLE public.jobs (
    id text NOT NULL,
    tenant text NOT NULL,
    "user" text NOT NULL,
    agent text NOT NULL,
    policy_version text NOT NULL,
    origin text NOT NULL,
    input jsonb NOT NULL,
    priority smallint NOT NULL,
    budget_tokens bigint,
    budget_usd numeric(12,6),
    deadline_seconds integer NOT NULL,
    deadline_at timestamp with time zone NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    previous_state text,
    step text,
    attempt integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    failure jsonb,
    generation integer DEFAULT 0 NOT NULL,
    result jsonb,
    tokens_in bigint DEFAULT 0 NOT NULL,
    tokens_out bigint DEFAULT 0 NOT NULL,
    usd numeric(18,9) DEFAULT 0 NOT NULL,
    tokens_reserved bigint DEFAULT 0 NOT NULL,
    usd_reserved numeric(18,9) DEFAULT 0 NOT NULL,
    event_seq integer DEFAULT 0 NOT NULL,
    cancel_requested_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    dispatched_at timestamp with time zone,
    started_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    finalized_at timestamp with time zone,
    budget_steps integer,
    trace_id text DEFAULT replace((gen_random_uuid())::text, '-'::text, ''::text) NOT NULL,
    wait_shown_until timestamp with time zone,
    wait_shown_at timestamp with time zone,
    waits_shown integer DEFAULT 0 NOT NULL,
    content_removed_at timestamp with time zone,
    erased_at timestamp with time zone,
    workflow_look_at timestamp with time zone,
    trace_parent text,
    trace_sampled boolean,
    CONSTRAINT jobs_budget_steps_positive CHECK ((budget_steps > 0)),
    CONSTRAINT jobs_content_removed_when_final CHECK (((content_removed_at IS NULL) OR (finalized_at IS NOT NULL))),
    CONSTRAINT jobs_dead_has_failure CHECK (((state <> 'dead'::text) OR (failure IS NOT NULL))),
    CONSTRAINT jobs_deadline_positive CHECK ((deadline_seconds > 0)),
    CONSTRAINT jobs_erased_without_content CHECK (((erased_at IS NULL) OR (content_removed_at IS NOT NULL))),
    CONSTRAINT jobs_finalized_exactly_when_final CHECK (((finalized_at IS NOT NULL) = (state = ANY (ARRAY['succeeded'::text, 'cancelled'::text, 'discarded'::text])))),
    CONSTRAINT jobs_id_is_safe CHECK ((id ~ '^[A-Za-z0-9_-]{1,64}$'::text)),
    CONSTRAINT jobs_next_attempt_exactly_in_retry_wait CHECK (((next_attempt_at IS NOT NULL) = (state = 'retry_wait'::text))),
    CONSTRAINT jobs_priority_range CHECK (((priority >= 1) AND (priority <= 5))),
    CONSTRAINT jobs_state_known CHECK ((state = ANY (ARRAY['pending'::text, 'running'::text, 'retry_wait'::text, 'waiting_approval'::text, 'succeeded'::text, 'dead'::text, 'cancelled'::text, 'discarded'::text]))),
    CONSTRAINT jobs_succeeded_has_result CHECK (((state <> 'succeeded'::text) OR (result IS NOT NULL))),
    CONSTRAINT jobs_tokens_reserved_not_negative CHECK ((tokens_reserved >= 0)),
    CONSTRAINT jobs_trace_id_form CHECK ((trace_id ~ '^[0-9a-f]{32}$'::text)),
    CONSTRAINT jobs_trace_parent_form CHECK ((trace_parent ~ '^[0-9a-f]{16}$'::text)),
    CONSTRAINT jobs_trace_sampled_exactly_with_parent CHECK (((trace_sampled IS NULL) = (trace_parent IS NULL))),
    CONSTRAINT jobs_transition_allowed CHECK (public.job_may_move(previous_state, state)),
    CONSTRAINT jobs_usd_reserved_not_negative CHECK ((usd_reserved >= (0)::numeric)),
    CONSTRAINT jobs_workflow_looked_for_without_content CHECK (((workflow_look_at IS NULL) OR (content_removed_at IS NOT NULL)))
);

CREATE VIEW public.erasure_jobs AS
 SELECT erasures.id AS erasure_id,
    jobs.id AS job_id,
    jobs.state,
    jobs.created_at,
    jobs.finalized_at,
    jobs.erased_at,
    jobs.cancel_requested_at,
    jobs.workflow_look_at
   FROM (public.erasures
     JOIN public.jobs ON (((jobs.id = erasures.job_id) AND (jobs.tenant = erasures.tenant))))
UNION ALL
 SELECT erasures.id AS erasure_id,
    jobs.id AS job_id,
    jobs.state,
    jobs.created_at,
    jobs.finalized_at,
    jobs.erased_at,
    jobs.cancel_requested_at,
    jobs.workflow_look_at
   FROM (public.erasures
     JOIN public.jobs ON (((jobs.tenant = erasures.tenant) AND (jobs."user" = erasures."user") AND (jobs.created_at <= erasures.created_at))));

CREATE TABLE public.grants (
    tenant text NOT NULL,
    "user" text NOT NULL,
    action text NOT NULL,
    granted_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT grants_action_form CHECK ((action ~ '^[a-z_]{1,40}:[a-z_]{1,40}$'::text))
);

CREATE TABLE public.idempotency_keys (
    tenant text NOT NULL,
    "user" text NOT NULL,
    operation text NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    job_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    budget_tokens bigint,
    budget_usd numeric(12,6),
    budget_steps integer
);

CREATE TABLE public.input_changes (
    id bigint NOT NULL,
    job_id text NOT NULL,
    generation integer NOT NULL,
    old_input jsonb NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    note text NOT NULL,
    CONSTRAINT input_changes_generation_positive CHECK ((generation > 0))
);

ALTER TABLE public.input_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.input_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.job_events (
    job_id text NOT NULL,
    seq integer NOT NULL,
    type text NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT job_events_data_is_object CHECK ((jsonb_typeof(data) = 'object'::text))
);

CREATE TABLE public.model_admission (
    model text NOT NULL,
    requests_until timestamp with time zone DEFAULT now() NOT NULL,
    tokens_until timestamp with time zone DEFAULT now() NOT NULL,
    tokens_per_minute bigint,
    next_place_at timestamp with time zone DEFAULT now() NOT NULL,
    call_seconds double precision DEFAULT 2 NOT NULL,
    parked_until timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    last_failure text,
    openings integer DEFAULT 0 NOT NULL,
    open_until timestamp with time zone,
    closed_at timestamp with time zone DEFAULT now() NOT NULL,
    probe_attempt_id bigint,
    probe_until timestamp with time zone,
    CONSTRAINT model_admission_call_seconds_not_negative CHECK ((call_seconds >= (0)::double precision)),
    CONSTRAINT model_admission_failures_not_negative CHECK ((failures >= 0)),
    CONSTRAINT model_admission_model_length CHECK (((length(model) >= 1) AND (length(model) <= 200))),
    CONSTRAINT model_admission_open_has_failures CHECK (((open_until IS NULL) OR ((failures > 0) AND (last_failure IS NOT NULL)))),
    CONSTRAINT model_admission_open_has_openings CHECK (((open_until IS NOT NULL) = (openings > 0))),
    CONSTRAINT model_admission_probe_has_lease CHECK (((probe_attempt_id IS NULL) = (probe_until IS NULL))),
    CONSTRAINT model_admission_probe_only_when_open CHECK (((probe_until IS NULL) OR (open_until IS NOT NULL)))
)
WITH (fillfactor='50');

CREATE TABLE public.outbox (
    id bigint NOT NULL,
    topic text NOT NULL,
    job_id text,
    tenant text NOT NULL,
    priority smallint DEFAULT 3 NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    available_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    redrive_id text,
    traceparent text,
    CONSTRAINT outbox_about_one_thing CHECK ((((redrive_id IS NOT NULL) = (topic = 'call_redrive'::text)) AND ((job_id IS NOT NULL) = (topic <> 'call_redrive'::text)))),
    CONSTRAINT outbox_topic_known CHECK ((topic = ANY (ARRAY['start_job'::text, 'cancel_job'::text, 'redrive_job'::text, 'discard_job'::text, 'job_died'::text, 'call_redrive'::text, 'approval_decided'::text, 'approval_requested'::text]))),
    CONSTRAINT outbox_traceparent_form CHECK ((traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$'::text))
);

ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.redrive_items (
    redrive_id text NOT NULL,
    job_id text NOT NULL,
    generation integer NOT NULL,
    place integer NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    asked_number integer,
    asked_at timestamp with time zone,
    skipped_because text,
    claimed boolean DEFAULT true NOT NULL,
    CONSTRAINT redrive_items_asked_has_number CHECK ((((asked_number IS NOT NULL) = (state = 'asked'::text)) AND ((asked_at IS NOT NULL) = (state = 'asked'::text)))),
    CONSTRAINT redrive_items_skipped_has_reason CHECK (((skipped_because IS NOT NULL) = (state = 'skipped'::text))),
    CONSTRAINT redrive_items_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'asked'::text, 'skipped'::text])))
);

CREATE TABLE public.redrives (
    id text NOT NULL,
    tenant text NOT NULL,
    created_by text NOT NULL,
    note text NOT NULL,
    filter jsonb NOT NULL,
    policy text NOT NULL,
    again boolean NOT NULL,
    canary integer NOT NULL,
    share double precision NOT NULL,
    rate_per_second double precision NOT NULL,
    failure_limit double precision NOT NULL,
    verdict_seconds integer NOT NULL,
    key text,
    fingerprint text NOT NULL,
    state text NOT NULL,
    letters integer NOT NULL,
    asked integer DEFAULT 0 NOT NULL,
    stopped_because text,
    needs_approval boolean NOT NULL,
    approved_by text,
    approved_at timestamp with time zone,
    approval_note text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    looked_at timestamp with time zone,
    finished_at timestamp with time zone,
    traceparent text,
    CONSTRAINT redrives_approved_by_a_second_person CHECK (((approved_by IS NULL) OR (approved_by <> created_by))),
    CONSTRAINT redrives_approved_exactly_with_time CHECK (((approved_by IS NOT NULL) = (approved_at IS NOT NULL))),
    CONSTRAINT redrives_asked_range CHECK (((asked >= 0) AND (asked <= letters))),
    CONSTRAINT redrives_canary_positive CHECK ((canary > 0)),
    CONSTRAINT redrives_failure_limit_range CHECK (((failure_limit >= (0)::double precision) AND (failure_limit <= (1)::double precision))),
    CONSTRAINT redrives_finished_exactly_when_final CHECK (((finished_at IS NOT NULL) = (state = ANY (ARRAY['stopped'::text, 'cancelled'::text, 'completed'::text])))),
    CONSTRAINT redrives_nothing_before_approval CHECK (((NOT needs_approval) OR (approved_by IS NOT NULL) OR ((state = ANY (ARRAY['awaiting_approval'::text, 'cancelled'::text])) AND (asked = 0)))),
    CONSTRAINT redrives_policy_known CHECK ((policy = ANY (ARRAY['original'::text, 'current'::text]))),
    CONSTRAINT redrives_rate_positive CHECK ((rate_per_second > (0)::double precision)),
    CONSTRAINT redrives_share_range CHECK (((share > (0)::double precision) AND (share <= (1)::double precision))),
    CONSTRAINT redrives_state_known CHECK ((state = ANY (ARRAY['awaiting_approval'::text, 'running'::text, 'paused'::text, 'stopped'::text, 'cancelled'::text, 'completed'::text]))),
    CONSTRAINT redrives_stopped_because_known CHECK ((stopped_because = ANY (ARRAY['canary_failed'::text, 'too_many_failed'::text, 'too_many_failed_lately'::text]))),
    CONSTRAINT redrives_stopped_has_reason CHECK (((stopped_because IS NOT NULL) = (state = 'stopped'::text))),
    CONSTRAINT redrives_traceparent_form CHECK ((traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$'::text)),
    CONSTRAINT redrives_verdict_seconds_positive CHECK ((verdict_seconds > 0))
);

CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.task_queues (
    name text NOT NULL,
    kind text NOT NULL,
    backlog bigint NOT NULL,
    oldest_seconds double precision NOT NULL,
    pollers integer NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT task_queues_backlog_not_negative CHECK ((backlog >= 0)),
    CONSTRAINT task_queues_kind_known CHECK ((kind = ANY (ARRAY['workflow'::text, 'activity'::text]))),
    CONSTRAINT task_queues_oldest_seconds_not_negative CHECK ((oldest_seconds >= (0)::double precision)),
    CONSTRAINT task_queues_pollers_not_negative CHECK ((pollers >= 0))
);

CREATE TABLE public.tenant_months (
    tenant text NOT NULL,
    month date NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    usd numeric(18,9) DEFAULT 0 NOT NULL,
    tokens_reserved bigint DEFAULT 0 NOT NULL,
    usd_reserved numeric(18,9) DEFAULT 0 NOT NULL,
    CONSTRAINT tenant_months_month_is_first_day CHECK ((EXTRACT(day FROM month) = (1)::numeric)),
    CONSTRAINT tenant_months_tokens_reserved_not_negative CHECK ((tokens_reserved >= 0)),
    CONSTRAINT tenant_months_usd_reserved_not_negative CHECK ((usd_reserved >= (0)::numeric))
)
WITH (fillfactor='50');

CREATE TABLE public.tenants (
    id text NOT NULL,
    running_cap integer DEFAULT 200 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    monthly_tokens bigint,
    monthly_usd numeric(12,6),
    quota_in_flight integer,
    quota_per_minute integer,
    quota_queue_length integer,
    CONSTRAINT tenants_id_is_safe CHECK ((id ~ '^[A-Za-z0-9_-]{1,64}$'::text)),
    CONSTRAINT tenants_monthly_tokens_positive CHECK ((monthly_tokens > 0)),
    CONSTRAINT tenants_monthly_usd_positive CHECK ((monthly_usd > (0)::numeric)),
    CONSTRAINT tenants_quota_in_flight_not_negative CHECK ((quota_in_flight >= 0)),
    CONSTRAINT tenants_quota_per_minute_not_negative CHECK ((quota_per_minute >= 0)),
    CONSTRAINT tenants_quota_queue_length_not_negative CHECK ((quota_queue_length >= 0)),
    CONSTRAINT tenants_running_cap_positive CHECK ((running_cap > 0))
);

CREATE TABLE public.tickets (
    id bigint NOT NULL,
    tenant text NOT NULL,
    operation_key text NOT NULL,
    job_id text NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    category text NOT NULL,
    urgency text NOT NULL,
    language text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    closed_at timestamp with time zone,
    search tsvector GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, ((subject || ' '::text) || body))) STORED,
    submitted_by text,
    CONSTRAINT tickets_closed_exactly_when_closed CHECK (((closed_at IS NOT NULL) = (state = 'closed'::text))),
    CONSTRAINT tickets_state_known CHECK ((state = ANY (ARRAY['open'::text, 'closed'::text]))),
    CONSTRAINT tickets_subject_not_blank CHECK ((subject ~ '\S'::text))
);

ALTER TABLE public.tickets ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tickets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.watch_findings (
    kind text NOT NULL,
    subject text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    told_at timestamp with time zone DEFAULT now() NOT NULL,
    detail text NOT NULL,
    CONSTRAINT watch_findings_kind_known CHECK ((kind = 'no_worker'::text))
);

CREATE TABLE public.webhook_deliveries (
    id text DEFAULT ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)) NOT NULL,
    webhook_id text NOT NULL,
    type text NOT NULL,
    job_id text,
    data jsonb NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    earlier_attempts integer DEFAULT 0 NOT NULL,
    last_status integer,
    last_error text,
    next_attempt_at timestamp with time zone DEFAULT now(),
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    delivered_at timestamp with time zone,
    CONSTRAINT webhook_deliveries_about_a_job CHECK (((job_id IS NOT NULL) = (type <> 'webhook.test'::text))),
    CONSTRAINT webhook_deliveries_attempts_range CHECK (((earlier_attempts >= 0) AND (earlier_attempts <= attempts))),
    CONSTRAINT webhook_deliveries_error_known CHECK ((last_error = ANY (ARRAY['unreachable'::text, 'refused'::text, 'webhook_disabled'::text]))),
    CONSTRAINT webhook_deliveries_next_exactly_when_waiting CHECK (((next_attempt_at IS NOT NULL) = (state = 'waiting'::text))),
    CONSTRAINT webhook_deliveries_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text]))),
    CONSTRAINT webhook_deliveries_time_exactly_when_delivered CHECK (((delivered_at IS NOT NULL) = (state = 'delivered'::text))),
    CONSTRAINT webhook_deliveries_type_known CHECK ((type = ANY (ARRAY['job.succeeded'::text, 'job.dead'::text, 'job.cancelled'::text, 'job.discarded'::text, 'webhook.test'::text])))
);

CREATE TABLE public.webhooks (
    id text NOT NULL,
    tenant text NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    description text,
    secret text NOT NULL,
    old_secret text,
    old_secret_until timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    throttled_until timestamp with time zone,
    failing_since timestamp with time zone,
    failed_count integer DEFAULT 0 NOT NULL,
    disabled_at timestamp with time zone,
    disabled_because text,
    CONSTRAINT webhooks_disabled_because_known CHECK ((disabled_because = ANY (ARRAY['gone'::text, 'failing'::text]))),
    CONSTRAINT webhooks_disabled_has_reason CHECK (((disabled_at IS NOT NULL) = (disabled_because IS NOT NULL))),
    CONSTRAINT webhooks_old_secret_has_end CHECK (((old_secret IS NOT NULL) = (old_secret_until IS NOT NULL))),
    CONSTRAINT webhooks_types_known CHECK (((types <@ ARRAY['job.succeeded'::text, 'job.dead'::text, 'job.cancelled'::text, 'job.discarded'::text]) AND (cardinality(types) > 0))),
    CONSTRAINT webhooks_url_length CHECK (((length(url) >= 1) AND (length(url) <= 2048)))
);

CREATE SEQUENCE public.worker_numbers
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.workers (
    id text NOT NULL,
    number integer NOT NULL,
    identity text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    stopped_at timestamp with time zone,
    lost_at timestamp with time zone,
    taken_over_at timestamp with time zone,
    build text
);

ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_pkey PRIMARY KEY (alert_id, sink);

ALTER TABLE ONLY public.alert_desks
    ADD CONSTRAINT alert_desks_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY public.alert_incidents
    ADD CONSTRAINT alert_incidents_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.alert_letters
    ADD CONSTRAINT alert_letters_pkey PRIMARY KEY (job_id, generation, topic, level);

ALTER TABLE ONLY public.alert_sinks
    ADD CONSTRAINT alert_sinks_pkey PRIMARY KEY (sink);

ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_unique UNIQUE (key_hash);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (effect_key, number);

ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deaths
    ADD CONSTRAINT deaths_pkey PRIMARY KEY (job_id, generation);

ALTER TABLE ONLY public.effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (tenant, "user", action);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, "user", operation, key);

ALTER TABLE ONLY public.input_changes
    ADD CONSTRAINT input_changes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.job_events
    ADD CONSTRAINT job_events_pkey PRIMARY KEY (job_id, seq);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.model_admission
    ADD CONSTRAINT model_admission_pkey PRIMARY KEY (model);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.redrive_items
    ADD CONSTRAINT redrive_items_pkey PRIMARY KEY (redrive_id, job_id);

ALTER TABLE ONLY public.redrives
    ADD CONSTRAINT redrives_one_per_key UNIQUE (tenant, created_by, key);

ALTER TABLE ONLY public.redrives
    ADD CONSTRAINT redrives_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.task_queues
    ADD CONSTRAINT task_queues_pkey PRIMARY KEY (name, kind);

ALTER TABLE ONLY public.tenant_months
    ADD CONSTRAINT tenant_months_pkey PRIMARY KEY (tenant, month);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.tickets
    ADD CONSTRAINT tickets_one_per_operation UNIQUE (operation_key);

ALTER TABLE ONLY public.tickets
    ADD CONSTRAINT tickets_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.watch_findings
    ADD CONSTRAINT watch_findings_pkey PRIMARY KEY (kind, subject);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.workers
    ADD CONSTRAINT workers_number_unique UNIQUE (number);

ALTER TABLE ONLY public.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX alert_deliveries_waiting ON public.alert_deliveries USING btree (next_attempt_at) WHERE (state = 'waiting'::text);

CREATE INDEX alert_letters_by_alert ON public.alert_letters USING btree (alert_id);

CREATE INDEX alerts_by_tenant ON public.alerts USING btree (tenant, created_at);

CREATE INDEX api_keys_by_tenant ON public.api_keys USING btree (tenant, created_at);

CREATE INDEX approvals_of_job ON public.approvals USING btree (job_id);

CREATE INDEX approvals_untold ON public.approvals USING btree (tenant, requested_at) WHERE ((state = 'requested'::text) AND (alerted_at IS NULL));

CREATE INDEX approvals_wanted ON public.approvals USING btree (tenant, requested_at, job_id) WHERE (state = 'requested'::text);

CREATE INDEX attempts_by_worker ON public.attempts USING btree (worker, job_id);

CREATE INDEX attempts_in_flight ON public.attempts USING btree (model) WHERE ((outcome = 'running'::text) AND (admitted_at IS NOT NULL));

CREATE INDEX attempts_of_job ON public.attempts USING btree (job_id, id);

CREATE INDEX attempts_running ON public.attempts USING btree (effect_key) WHERE (outcome = 'running'::text);

CREATE INDEX audit_log_by_target ON public.audit_log USING btree (tenant, target, id);

CREATE INDEX audit_log_by_tenant ON public.audit_log USING btree (tenant, id);

CREATE INDEX dead_letters_by_tenant ON public.dead_letters USING btree (tenant, died_at DESC, id DESC);

CREATE INDEX dead_letters_open_by_age ON public.dead_letters USING btree (tenant, died_at) WHERE (state = 'open'::text);

CREATE INDEX dead_letters_word_given ON public.dead_letters USING btree (id) WHERE (state = ANY (ARRAY['redrive_requested'::text, 'discard_requested'::text]));

CREATE INDEX deaths_by_tenant ON public.deaths USING btree (tenant, died_at);

CREATE INDEX deaths_resolved ON public.deaths USING btree (tenant, resolved_at) WHERE (resolved_at IS NOT NULL);

CREATE INDEX effects_of_job ON public.effects USING btree (job_id, begun_at);

CREATE INDEX erasures_of_job ON public.erasures USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX erasures_under_way ON public.erasures USING btree (looked_at) WHERE (completed_at IS NULL);

CREATE INDEX idempotency_keys_of_job ON public.idempotency_keys USING btree (job_id);

CREATE INDEX input_changes_of_job ON public.input_changes USING btree (job_id, generation);

CREATE INDEX jobs_by_state ON public.jobs USING btree (tenant, state, created_at DESC, id DESC);

CREATE INDEX jobs_dispatched_and_live ON public.jobs USING btree (tenant) WHERE ((dispatched_at IS NOT NULL) AND (state = ANY (ARRAY['pending'::text, 'running'::text, 'retry_wait'::text, 'waiting_approval'::text])));

CREATE INDEX jobs_in_flight ON public.jobs USING btree (tenant, "user") WHERE (state = ANY (ARRAY['pending'::text, 'running'::text, 'retry_wait'::text, 'waiting_approval'::text]));

CREATE INDEX jobs_live ON public.jobs USING btree (deadline_at, id) WHERE (state = ANY (ARRAY['pending'::text, 'running'::text, 'retry_wait'::text, 'waiting_approval'::text]));

CREATE INDEX jobs_newest_first ON public.jobs USING btree (tenant, created_at DESC, id DESC);

CREATE INDEX jobs_of_user ON public.jobs USING btree (tenant, "user", created_at);

CREATE INDEX jobs_queued ON public.jobs USING btree (tenant) WHERE ((state = 'pending'::text) AND (dispatched_at IS NULL));

CREATE INDEX jobs_waiting ON public.jobs USING btree (next_attempt_at) WHERE (state = 'retry_wait'::text);

CREATE INDEX jobs_with_content ON public.jobs USING btree (finalized_at) WHERE ((finalized_at IS NOT NULL) AND (content_removed_at IS NULL));

CREATE INDEX jobs_without_content ON public.jobs USING btree (finalized_at) WHERE (content_removed_at IS NOT NULL);

CREATE INDEX jobs_workflow_left ON public.jobs USING btree (workflow_look_at) WHERE (workflow_look_at IS NOT NULL);

CREATE INDEX outbox_commands ON public.outbox USING btree (id) WHERE (topic <> 'start_job'::text);

CREATE INDEX outbox_of_job ON public.outbox USING btree (job_id);

CREATE INDEX outbox_redrives ON public.outbox USING btree (id) WHERE (topic = 'call_redrive'::text);

CREATE INDEX outbox_starts ON public.outbox USING btree (tenant, priority, id) WHERE (topic = 'start_job'::text);

CREATE UNIQUE INDEX redrive_items_numbered_once ON public.redrive_items USING btree (redrive_id, asked_number);

CREATE INDEX redrive_items_of_job ON public.redrive_items USING btree (job_id);

CREATE UNIQUE INDEX redrive_items_one_redrive_at_a_time ON public.redrive_items USING btree (job_id) WHERE claimed;

CREATE INDEX redrive_items_waiting ON public.redrive_items USING btree (redrive_id, place) WHERE (state = 'waiting'::text);

CREATE INDEX redrives_newest_first ON public.redrives USING btree (tenant, created_at DESC, id DESC);

CREATE INDEX redrives_running ON public.redrives USING btree (looked_at) WHERE (state = 'running'::text);

CREATE INDEX tickets_of_job ON public.tickets USING btree (job_id);

CREATE INDEX tickets_of_tenant ON public.tickets USING btree (tenant, id);

CREATE INDEX tickets_of_user ON public.tickets USING btree (tenant, submitted_by) WHERE (submitted_by IS NOT NULL);

CREATE INDEX tickets_search ON public.tickets USING gin (search);

CREATE INDEX webhook_deliveries_by_age ON public.webhook_deliveries USING btree (created_at);

CREATE INDEX webhook_deliveries_newest_first ON public.webhook_deliveries USING btree (webhook_id, created_at DESC, id DESC);

CREATE INDEX webhook_deliveries_waiting ON public.webhook_deliveries USING btree (webhook_id, next_attempt_at) WHERE (state = 'waiting'::text);

CREATE INDEX webhooks_by_tenant ON public.webhooks USING btree (tenant, created_at);

CREATE INDEX workers_present ON public.workers USING btree (number) WHERE ((stopped_at IS NULL) AND (taken_over_at IS NULL));

CREATE TRIGGER audit_log_append_only BEFORE DELETE OR TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.audit_log_is_append_only();

CREATE TRIGGER audit_log_loses_only_notes BEFORE UPDATE ON public.audit_log FOR EACH ROW EXECUTE FUNCTION public.audit_log_loses_only_notes();

CREATE TRIGGER job_events_ring AFTER INSERT ON public.job_events FOR EACH ROW EXECUTE FUNCTION public.job_events_ring();

CREATE TRIGGER jobs_keep_previous_state BEFORE UPDATE OF state ON public.jobs FOR EACH ROW WHEN ((old.state IS DISTINCT FROM new.state)) EXECUTE FUNCTION public.jobs_keep_previous_state();

CREATE TRIGGER jobs_tell_webhooks AFTER UPDATE OF state ON public.jobs FOR EACH ROW WHEN (((new.state = ANY (ARRAY['succeeded'::text, 'dead'::text, 'cancelled'::text, 'discarded'::text])) AND ((old.state IS DISTINCT FROM new.state) OR (old.generation IS DISTINCT FROM new.generation)))) EXECUTE FUNCTION public.jobs_tell_webhooks();

ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_alert_fkey FOREIGN KEY (alert_id) REFERENCES public.alerts(id);

ALTER TABLE ONLY public.alert_desks
    ADD CONSTRAINT alert_desks_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.alert_incidents
    ADD CONSTRAINT alert_incidents_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.alert_letters
    ADD CONSTRAINT alert_letters_alert_fkey FOREIGN KEY (alert_id) REFERENCES public.alerts(id);

ALTER TABLE ONLY public.alert_letters
    ADD CONSTRAINT alert_letters_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_job_fkey FOREIGN KEY (id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.deaths
    ADD CONSTRAINT deaths_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.effects
    ADD CONSTRAINT effects_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.input_changes
    ADD CONSTRAINT input_changes_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.job_events
    ADD CONSTRAINT job_events_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_redrive_fkey FOREIGN KEY (redrive_id) REFERENCES public.redrives(id);

ALTER TABLE ONLY public.redrive_items
    ADD CONSTRAINT redrive_items_job_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.redrive_items
    ADD CONSTRAINT redrive_items_redrive_fkey FOREIGN KEY (redrive_id) REFERENCES public.redrives(id);

ALTER TABLE ONLY public.redrives
    ADD CONSTRAINT redrives_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.tenant_months
    ADD CONSTRAINT tenant_months_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.tickets
    ADD CONSTRAINT tickets_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_webhook_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_tenant_fkey FOREIGN KEY (tenant) REFERENCES public.tenants(id);
