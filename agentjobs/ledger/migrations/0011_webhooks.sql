-- Webhooks: addresses of a tenant that are told when its jobs end or die (docs/webhooks.md). What is told is written
-- together with the job's state; the relay sends it.

CREATE TABLE webhooks (
    id text CONSTRAINT webhooks_pkey PRIMARY KEY,
    tenant text NOT NULL CONSTRAINT webhooks_tenant_fkey REFERENCES tenants,
    url text NOT NULL CONSTRAINT webhooks_url_length CHECK (length(url) BETWEEN 1 AND 2048),
    types text[] NOT NULL CONSTRAINT webhooks_types_known CHECK (
        types <@ ARRAY['job.succeeded', 'job.dead', 'job.cancelled', 'job.discarded'] AND cardinality(types) > 0),
    description text,
    -- In clear: what signs cannot be a hash.
    secret text NOT NULL,
    old_secret text, -- signs too, until its end: receivers may know either
    old_secret_until timestamptz,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    throttled_until timestamptz,
    -- Since the last delivery that arrived: when an attempt first failed, and how many deliveries were given up.
    failing_since timestamptz,
    failed_count integer NOT NULL DEFAULT 0,
    disabled_at timestamptz,
    disabled_because text CONSTRAINT webhooks_disabled_because_known CHECK (disabled_because IN ('gone', 'failing')),
    CONSTRAINT webhooks_old_secret_has_end CHECK ((old_secret IS NOT NULL) = (old_secret_until IS NOT NULL)),
    CONSTRAINT webhooks_disabled_has_reason CHECK ((disabled_at IS NOT NULL) = (disabled_because IS NOT NULL))
);
CREATE INDEX webhooks_by_tenant ON webhooks (tenant, created_at);

CREATE TABLE webhook_deliveries (
    -- The header webhook-id of every attempt, replays included.
    id text DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', '')
        CONSTRAINT webhook_deliveries_pkey PRIMARY KEY,
    webhook_id text NOT NULL CONSTRAINT webhook_deliveries_webhook_fkey REFERENCES webhooks ON DELETE CASCADE,
    type text NOT NULL CONSTRAINT webhook_deliveries_type_known CHECK (
        type IN ('job.succeeded', 'job.dead', 'job.cancelled', 'job.discarded', 'webhook.test')),
    job_id text, -- no reference: what is told of a job may outlive it
    data jsonb NOT NULL, -- ids and codes, no content
    state text NOT NULL DEFAULT 'waiting' CONSTRAINT webhook_deliveries_state_known CHECK (
        state IN ('waiting', 'delivered', 'failed')),
    attempts integer NOT NULL DEFAULT 0, -- counted before each is made, so that it also fences a late one
    earlier_attempts integer NOT NULL DEFAULT 0, -- before the latest replay, which begins the schedule anew
    last_status integer,
    last_error text CONSTRAINT webhook_deliveries_error_known CHECK (
        last_error IN ('unreachable', 'refused', 'webhook_disabled')),
    -- While an attempt is under way: when it counts as lost.
    next_attempt_at timestamptz DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    CONSTRAINT webhook_deliveries_about_a_job CHECK ((job_id IS NOT NULL) = (type <> 'webhook.test')),
    CONSTRAINT webhook_deliveries_attempts_range CHECK (earlier_attempts BETWEEN 0 AND attempts),
    CONSTRAINT webhook_deliveries_next_exactly_when_waiting CHECK ((next_attempt_at IS NOT NULL) = (state = 'waiting')),
    CONSTRAINT webhook_deliveries_time_exactly_when_delivered CHECK (
        (delivered_at IS NOT NULL) = (state = 'delivered'))
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, next_attempt_at) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_newest_first ON webhook_deliveries (webhook_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);

-- KEY SHARE: a webhook that is being removed at this moment is waited for and then passed over. Without it, the
-- reference would fail, and the job's end with it. No NOTIFY: it would make commits wait for each other, and a second
-- is soon enough.
CREATE FUNCTION jobs_tell_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- A dead job may die again without having run: then its generation says so, and not its state.
CREATE TRIGGER jobs_tell_webhooks AFTER UPDATE OF state ON jobs FOR EACH ROW
    WHEN (NEW.state IN ('succeeded', 'dead', 'cancelled', 'discarded')
          AND (OLD.state, OLD.generation) IS DISTINCT FROM (NEW.state, NEW.generation))
    EXECUTE FUNCTION jobs_tell_webhooks();
