-- A reviewer is told when a call begins to wait for one (docs/approvals.md). Such an alert is a row as those of deaths are:
-- its `reason` is the tool, the rest counts requests and says when they were made.
ALTER TABLE approvals ADD COLUMN alerted_at timestamptz; -- since when an alert about it is on record
CREATE INDEX approvals_untold ON approvals (tenant, requested_at) WHERE state = 'requested' AND alerted_at IS NULL;

ALTER TABLE alerts DROP CONSTRAINT alerts_kind_known;
ALTER TABLE alerts ADD CONSTRAINT alerts_kind_known CHECK (kind IN (
    'job.died', 'jobs.died', 'dead_letters.escalated', 'dead_letters.discarding', 'approval.requested',
    'approvals.requested'));
ALTER TABLE alerts DROP CONSTRAINT alerts_single_has_one;
ALTER TABLE alerts ADD CONSTRAINT alerts_single_has_one CHECK (
    kind NOT IN ('job.died', 'approval.requested') OR letter_count = 1);

ALTER TABLE outbox DROP CONSTRAINT outbox_topic_known;
ALTER TABLE outbox ADD CONSTRAINT outbox_topic_known CHECK (topic IN (
    'start_job', 'cancel_job', 'redrive_job', 'discard_job', 'job_died', 'call_redrive', 'approval_decided',
    'approval_requested'));

-- A submission over a quota is refused by an answer and no longer by an error: an error is a line in the server's log, and
-- being refused is everyday life. `admit` does what `require_quotas` did, and takes the key before, so that it can give it
-- back: what is refused uses up no key. The key comes before its job, so its reference is looked at when both are there.
ALTER TABLE idempotency_keys ALTER CONSTRAINT idempotency_keys_job_fkey DEFERRABLE INITIALLY DEFERRED;

-- No row: the key is taken. A row with `refused`: the name of a quota at its limit. Else what is in use with the row that
-- is about to be accepted, of the quotas that have a limit.
--
-- In READ COMMITTED each statement in here sees what is committed by then. So whoever holds the lock counts all that
-- were accepted before, and the next one counts this job: what is admitted is the limit exactly.
CREATE FUNCTION admit(
    of_tenant text, of_user text, of_key text, of_fingerprint text, of_job text, of_tokens bigint, of_usd numeric,
    of_steps integer, in_flight integer, per_minute integer, queue_length integer
) RETURNS TABLE (refused text, at_most integer, in_use integer, wait_seconds integer, quotas jsonb)
LANGUAGE plpgsql VOLATILE AS $$
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
DROP FUNCTION require_quotas;
