-- Word of new events for whoever follows a job (docs/events.md).
--
-- A transaction that notifies holds one lock of the whole server while its commit reaches the disk, so commits that notify
-- go one after the other. Two locks that nobody waits for keep that away from the writers of events:
--   (24939, 0)  held, shared, by each API process that has streams open. Who can take it knows that nobody follows.
--   (24939, 1)  held by the one transaction that rings at the moment. The others need not: a reader looks at all of its jobs
--               whenever it rings, and it looks every second besides.
CREATE FUNCTION job_events_ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock(24939, 0) THEN
        PERFORM pg_advisory_unlock(24939, 0);
    ELSIF pg_try_advisory_xact_lock(24939, 1) THEN
        PERFORM pg_notify('agentjobs_events', '');
    END IF;
    RETURN NULL;
END $$;

-- For each row, since most statements that may write an event write none.
CREATE TRIGGER job_events_ring AFTER INSERT ON job_events FOR EACH ROW EXECUTE FUNCTION job_events_ring();

-- One event that cannot be shown would stop the reading of all: readers take them together.
ALTER TABLE job_events ADD CONSTRAINT job_events_data_is_object CHECK (jsonb_typeof(data) = 'object');
