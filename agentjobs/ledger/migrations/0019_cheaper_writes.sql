-- PostgreSQL reads and plans every CHECK of a table anew in each statement that writes a row of it. The one over the moves
-- of a job was longer than all others of its table together, and was most of what a change of a job cost. A function is
-- planned once a session. (plpgsql, since one in SQL would be put into the statement, and planned with it.)
CREATE FUNCTION job_may_move(before text, after text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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
ALTER TABLE jobs DROP CONSTRAINT jobs_transition_allowed;
ALTER TABLE jobs ADD CONSTRAINT jobs_transition_allowed CHECK (job_may_move(previous_state, state));

-- As before, but the lock is taken and given back in one expression: a statement that is cancelled between two of them
-- would leave it with its session, which goes back into the pool as it is.
CREATE OR REPLACE FUNCTION job_events_ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE WHEN pg_try_advisory_lock(24939, 0) THEN NOT pg_advisory_unlock(24939, 0)
             ELSE pg_try_advisory_xact_lock(24939, 1) END) THEN
        PERFORM pg_notify('agentjobs_events', '');
    END IF;
    RETURN NULL;
END $$;
