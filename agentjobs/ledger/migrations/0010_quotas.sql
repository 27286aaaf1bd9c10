-- Quotas: of a user's jobs that are not over, of a user's submissions in a minute, of a tenant's jobs that wait for
-- their start. What is in use is counted among the jobs themselves: there is no counter that could leak.

-- NULL: as the installation has it. 0: no limit.
ALTER TABLE tenants
    ADD COLUMN quota_in_flight integer CONSTRAINT tenants_quota_in_flight_not_negative CHECK (quota_in_flight >= 0),
    ADD COLUMN quota_per_minute integer CONSTRAINT tenants_quota_per_minute_not_negative CHECK (quota_per_minute >= 0),
    ADD COLUMN quota_queue_length integer
        CONSTRAINT tenants_quota_queue_length_not_negative CHECK (quota_queue_length >= 0);

CREATE INDEX jobs_in_flight ON jobs (tenant, "user")
    WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval');
CREATE INDEX jobs_queued ON jobs (tenant) WHERE state = 'pending' AND dispatched_at IS NULL;
CREATE INDEX jobs_of_user ON jobs (tenant, "user", created_at);

-- The tenant's limits, NULL for none. The tenant's own quota comes first: whoever takes the locks of several takes
-- that of the tenant before that of a user, so that a transaction with jobs of several users meets no other crosswise.
CREATE FUNCTION quota_limits(
    of_tenant text, in_flight integer, per_minute integer, queue_length integer
) RETURNS TABLE (quota text, at_most integer) LANGUAGE sql STABLE AS $$
    SELECT named.quota, nullif(coalesce(named.own, named.installation), 0)
      FROM tenants CROSS JOIN LATERAL (VALUES
           (1, 'queue_length', tenants.quota_queue_length, queue_length),
           (2, 'per_minute', tenants.quota_per_minute, per_minute),
           (3, 'in_flight', tenants.quota_in_flight, in_flight)) AS named (place, quota, own, installation)
     WHERE tenants.id = of_tenant
     ORDER BY named.place
$$;

-- How much of a quota is in use; it counts no further than `up_to`. VOLATILE: each call counts what is committed by
-- then, and not what was when its caller began.
CREATE FUNCTION quota_in_use(quota text, of_tenant text, of_user text, up_to integer) RETURNS integer
    LANGUAGE plpgsql VOLATILE AS $$
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

-- What is in use of every quota, also of one without a limit.
CREATE FUNCTION quota_uses(
    of_tenant text, of_user text, in_flight integer, per_minute integer, queue_length integer
) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'quota', quota, 'limit', at_most, 'in_use', quota_in_use(quota, of_tenant, of_user, NULL))), '[]')
      FROM quota_limits(of_tenant, in_flight, per_minute, queue_length)
$$;

-- Called for the row that is about to be accepted, by the statement that accepts it. Returns what is in use with it,
-- of the quotas that have a limit. At a limit it raises AJ429, with the numbers as its detail.
--
-- In READ COMMITTED each statement in here sees what is committed by then. So whoever holds the lock counts all that
-- were accepted before, and the next one counts this job: what is admitted is the limit exactly.
CREATE FUNCTION require_quotas(
    of_tenant text, of_user text, in_flight integer, per_minute integer, queue_length integer
) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    beside CONSTANT integer := current_setting('max_connections');
    uses jsonb := '[]';
    quota text;
    at_most integer;
    used integer;
BEGIN
    -- From here on the transaction has a number, also while it waits below: an order to erase what the user has submitted
    -- is not complete before it has ended.
    PERFORM pg_current_xact_id();
    FOR quota, at_most IN
        SELECT * FROM quota_limits(of_tenant, in_flight, per_minute, queue_length) AS l WHERE l.at_most IS NOT NULL
    LOOP
        used := NULL;
        IF at_most > beside THEN
            used := quota_in_use(quota, of_tenant, of_user, at_most);
        END IF;
        -- No more transactions than connections can be in flight beside this one. Where there is room for a job of
        -- each, nobody need wait for anybody.
        IF used IS NULL OR used + beside > at_most THEN
            PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(
                ' ', 'agentjobs.quota', quota, of_tenant, CASE WHEN quota <> 'queue_length' THEN of_user END), 0));
            used := quota_in_use(quota, of_tenant, of_user, at_most);
        END IF;
        IF used >= at_most THEN
            RAISE EXCEPTION 'over quota' USING ERRCODE = 'AJ429', DETAIL = jsonb_build_object(
                'quota', quota, 'limit', at_most, 'in_use', used,
                'wait_seconds', CASE WHEN quota = 'per_minute' THEN (
                    SELECT greatest(1, ceil(extract(
                               epoch FROM created_at + interval '60 seconds' - clock_timestamp())))::integer
                      FROM jobs
                     WHERE tenant = of_tenant AND "user" = of_user AND created_at > now() - interval '60 seconds'
                     ORDER BY created_at DESC OFFSET at_most - 1 LIMIT 1) END);
        END IF;
        uses := uses || jsonb_build_object('quota', quota, 'limit', at_most, 'in_use', used + 1);
    END LOOP;
    RETURN uses;
END
$$;
