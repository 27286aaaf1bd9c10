"""What the constraints of bulk redrives refuse; part of test_constraints.py."""

_REDRIVE = (
    "INSERT INTO redrives (id, tenant, created_by, note, filter, policy, again, canary, share, rate_per_second, "
    "failure_limit, verdict_seconds, key, fingerprint, state, letters, needs_approval) VALUES "
)
_OF = "'acme', 'rita', 'n', '{}', 'original', false, 1, 0.1, 1, 0.2, 60"
_ITEM = "INSERT INTO redrive_items (redrive_id, job_id, generation, place) VALUES "
_CALL = "INSERT INTO outbox (topic, redrive_id, tenant) VALUES "

VIOLATIONS = {
    "redrives_pkey": f"{_REDRIVE} ('r1', {_OF}, NULL, 'f', 'running', 1, false)",
    "redrives_tenant_fkey": f"{_REDRIVE} ('new', {_OF.replace('acme', 'nobody')}, NULL, 'f', 'running', 1, false)",
    "redrives_one_per_key": f"{_REDRIVE} ('new', {_OF}, 'k', 'f', 'running', 1, false)",
    "redrives_policy_known": "UPDATE redrives SET policy = 'latest'",
    "redrives_canary_positive": "UPDATE redrives SET canary = 0",
    "redrives_share_range": "UPDATE redrives SET share = 0",
    "redrives_rate_positive": "UPDATE redrives SET rate_per_second = 0",
    "redrives_failure_limit_range": "UPDATE redrives SET failure_limit = 1.5",
    "redrives_verdict_seconds_positive": "UPDATE redrives SET verdict_seconds = 0",
    "redrives_state_known": "UPDATE redrives SET state = 'asleep'",
    "redrives_stopped_because_known": "UPDATE redrives SET state = 'stopped', finished_at = now(), "
    "stopped_because = 'bored'",
    "redrives_asked_range": "UPDATE redrives SET asked = letters + 1",
    "redrives_stopped_has_reason": "UPDATE redrives SET state = 'stopped', finished_at = now()",
    "redrives_finished_exactly_when_final": "UPDATE redrives SET state = 'completed'",
    "redrives_approved_by_a_second_person": "UPDATE redrives SET approved_by = created_by, approved_at = now()",
    "redrives_approved_exactly_with_time": "UPDATE redrives SET approved_by = 'rolf'",
    "redrives_nothing_before_approval": "UPDATE redrives SET needs_approval = true",
    "redrive_items_pkey": f"{_ITEM} ('r1', 'dead', 2, 2)",
    "redrive_items_redrive_fkey": f"{_ITEM} ('nothing', 'job', 1, 2)",
    "redrive_items_job_fkey": f"{_ITEM} ('r1', 'nothing', 1, 2)",
    "redrive_items_state_known": "UPDATE redrive_items SET state = 'asleep'",
    "redrive_items_asked_has_number": "UPDATE redrive_items SET state = 'asked', asked_at = now()",
    "redrive_items_skipped_has_reason": "UPDATE redrive_items SET state = 'skipped'",
    "outbox_redrive_fkey": f"{_CALL} ('call_redrive', 'nothing', 'acme')",
    "outbox_about_one_thing": f"{_CALL} ('call_redrive', NULL, 'acme')",
}
SEED = (
    f"{_REDRIVE} ('r1', {_OF}, 'k', 'f', 'running', 1, false)",
    f"{_ITEM} ('r1', 'dead', 1, 1)",
)
