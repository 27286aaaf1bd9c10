-- What the relay needs to compare the ledger with Temporal, and a place for what it finds amiss of a whole queue.

-- Live jobs by deadline: the overdue ones first, and a window that moves over all of them. Not by updated_at: an
-- index on that would make every step of every job write to it.
CREATE INDEX jobs_live ON jobs (deadline_at, id)
 WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval');

-- Whether anything of a job still waits to be told.
CREATE INDEX outbox_of_job ON outbox (job_id);

-- Words of reviewers that are under way: few at any moment.
CREATE INDEX dead_letters_word_given ON dead_letters (id)
 WHERE state IN ('redrive_requested', 'discard_requested');

-- What is amiss now: a row lives as long as its finding holds.
CREATE TABLE watch_findings (
    kind text NOT NULL CONSTRAINT watch_findings_kind_known CHECK (kind IN ('no_worker')),
    subject text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    told_at timestamptz NOT NULL DEFAULT now(),
    detail text NOT NULL,
    CONSTRAINT watch_findings_pkey PRIMARY KEY (kind, subject)
);
