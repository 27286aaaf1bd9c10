-- Where jobs stand in their traces (docs/tracing.md): the request's span, and for an order on a dead job the request
-- that gave it. NULL where nobody traced.
ALTER TABLE jobs
    ADD COLUMN trace_parent text CONSTRAINT jobs_trace_parent_form CHECK (trace_parent ~ '^[0-9a-f]{16}$'),
    ADD COLUMN trace_sampled boolean,
    ADD CONSTRAINT jobs_trace_sampled_exactly_with_parent CHECK ((trace_sampled IS NULL) = (trace_parent IS NULL));

ALTER TABLE outbox
    ADD COLUMN traceparent text
        CONSTRAINT outbox_traceparent_form CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$');

ALTER TABLE redrives
    ADD COLUMN traceparent text
        CONSTRAINT redrives_traceparent_form CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$');
