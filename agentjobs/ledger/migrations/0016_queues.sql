-- What a relay last saw of Temporal's task queues. The API shows it, and asks Temporal nothing itself (docs/adr/0002).

CREATE TABLE task_queues (
    name           text NOT NULL,
    kind           text NOT NULL,
    backlog        bigint NOT NULL,
    oldest_seconds double precision NOT NULL,
    pollers        integer NOT NULL,
    seen_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT task_queues_pkey PRIMARY KEY (name, kind),
    CONSTRAINT task_queues_kind_known CHECK (kind IN ('workflow', 'activity')),
    CONSTRAINT task_queues_backlog_not_negative CHECK (backlog >= 0),
    CONSTRAINT task_queues_oldest_seconds_not_negative CHECK (oldest_seconds >= 0),
    CONSTRAINT task_queues_pollers_not_negative CHECK (pollers >= 0)
);
