"""Rows of the tables that came after the first migration, and what their constraints refuse."""

_ALERT = (
    "INSERT INTO alerts (id, tenant, kind, level, reason, agent, letter_count, in_doubt_count, first_died_at, "
    "last_died_at, shown_ids) VALUES "
)
_TOLD = "INSERT INTO alert_letters (alert_id, job_id, generation, topic, level) VALUES "

_CHANGE = "INSERT INTO input_changes (job_id, generation, old_input, changed_by, note) VALUES "

SEED = (
    f"{_CHANGE} ('dead', 1, '{{}}', 'rita', 'n')",
    "INSERT INTO model_admission (model) VALUES ('m')",
    "INSERT INTO watch_findings (kind, subject, detail) VALUES ('no_worker', 'q', 'd')",
    f"{_ALERT} ('al', 'acme', 'job.died', 0, 'r', 'a', 1, 0, now(), now(), '{{}}')",
    f"{_TOLD} ('al', 'dead', 1, 'died', 0)",
    "INSERT INTO alert_deliveries (alert_id, sink) VALUES ('al', 'webhook')",
    "INSERT INTO alert_sinks (sink) VALUES ('webhook')",
    "INSERT INTO alert_incidents (key, tenant) VALUES ('in', 'acme')",
    "INSERT INTO alert_desks (tenant, looked_at) VALUES ('acme', now())",
)

VIOLATIONS = {
    "input_changes_pkey": "INSERT INTO input_changes (id, job_id, generation, old_input, changed_by, note) "
    "OVERRIDING SYSTEM VALUE SELECT id, job_id, generation, old_input, changed_by, note FROM input_changes",
    "input_changes_job_fkey": _CHANGE + "('nothing', 1, '{}', 'rita', 'n')",
    "input_changes_generation_positive": _CHANGE + "('dead', 0, '{}', 'rita', 'n')",
    "model_admission_pkey": "INSERT INTO model_admission (model) VALUES ('m')",
    "model_admission_model_length": "INSERT INTO model_admission (model) VALUES ('')",
    "model_admission_call_seconds_not_negative": "UPDATE model_admission SET call_seconds = -1",
    "model_admission_failures_not_negative": "UPDATE model_admission SET failures = -1",
    "model_admission_open_has_openings": "UPDATE model_admission SET openings = 1",
    "model_admission_open_has_failures": "UPDATE model_admission SET openings = 1, open_until = now()",
    "model_admission_probe_has_lease": "UPDATE model_admission SET probe_attempt_id = 1",
    "model_admission_probe_only_when_open": "UPDATE model_admission SET probe_attempt_id = 1, probe_until = now()",
    "attempts_admitted_to_a_model": "UPDATE attempts SET admitted_at = now(), admitted_tokens = 1",
    "attempts_admitted_with_tokens": "UPDATE attempts SET admitted_at = now(), model = 'm'",
    "attempts_reported_was_admitted": "UPDATE attempts SET reported_at = now()",
    "job_events_data_is_object": "UPDATE job_events SET data = '[]'",
    "watch_findings_pkey": "INSERT INTO watch_findings (kind, subject, detail) VALUES ('no_worker', 'q', 'd')",
    "watch_findings_kind_known": "UPDATE watch_findings SET kind = 'odd'",
    "alerts_pkey": _ALERT + "('al', 'acme', 'job.died', 0, 'r', 'a', 1, 0, now(), now(), '{}')",
    "alerts_tenant_fkey": _ALERT + "('new', 'nobody', 'job.died', 0, 'r', 'a', 1, 0, now(), now(), '{}')",
    "alerts_kind_known": "UPDATE alerts SET kind = 'job.slept'",
    "alerts_letter_count_positive": "UPDATE alerts SET letter_count = 0, kind = 'jobs.died'",
    "alerts_level_of_escalations": "UPDATE alerts SET level = 1",
    "alerts_single_has_one": "UPDATE alerts SET letter_count = 2",
    "alert_letters_pkey": _TOLD + "('al', 'dead', 1, 'died', 0)",
    "alert_letters_alert_fkey": _TOLD + "('nothing', 'dead', 2, 'died', 0)",
    "alert_letters_job_fkey": _TOLD + "('al', 'nothing', 1, 'died', 0)",
    "alert_letters_topic_known": _TOLD + "('al', 'dead', 1, 'sang', 0)",
    "alert_deliveries_pkey": "INSERT INTO alert_deliveries (alert_id, sink) VALUES ('al', 'webhook')",
    "alert_deliveries_alert_fkey": "INSERT INTO alert_deliveries (alert_id, sink) VALUES ('nothing', 'webhook')",
    "alert_deliveries_state_known": "UPDATE alert_deliveries SET state = 'lost'",
    "alert_deliveries_time_exactly_when_delivered": "UPDATE alert_deliveries SET state = 'delivered'",
    "alert_sinks_pkey": "INSERT INTO alert_sinks (sink) VALUES ('webhook')",
    "alert_incidents_pkey": "INSERT INTO alert_incidents (key, tenant) VALUES ('in', 'acme')",
    "alert_incidents_tenant_fkey": "INSERT INTO alert_incidents (key, tenant) VALUES ('new', 'nobody')",
    "alert_incidents_opened_exactly_with_receipt": "UPDATE alert_incidents SET receipt = '7'",
    "alert_desks_pkey": "INSERT INTO alert_desks (tenant, looked_at) VALUES ('acme', now())",
    "alert_desks_tenant_fkey": "INSERT INTO alert_desks (tenant, looked_at) VALUES ('nobody', now())",
}
