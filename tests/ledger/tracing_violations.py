"""What the constraints on places in traces refuse; part of test_constraints.py."""

_PLACE = f"00-{'a' * 32}-{'b' * 16}-02"

VIOLATIONS = {
    "jobs_trace_parent_form": "UPDATE jobs SET trace_parent = 'B7AD6B7169203331', trace_sampled = true",
    "jobs_trace_sampled_exactly_with_parent": "UPDATE jobs SET trace_sampled = true",
    "outbox_traceparent_form": "INSERT INTO outbox (topic, job_id, tenant, traceparent) "
    f"VALUES ('redrive_job', 'dead', 'acme', '{_PLACE}')",
    "redrives_traceparent_form": f"UPDATE redrives SET traceparent = '{_PLACE}'",
}
