"""What the constraints of approvals refuse; part of test_constraints.py."""

_ASKED = (
    "INSERT INTO approvals (effect_key, number, job_id, tenant, generation, step, tool, fingerprint, expires_at) "
    "VALUES "
)
_OF = "'acme', 0, 'step-1.x', 'x', 'f', now()"

VIOLATIONS = {
    "approvals_pkey": f"{_ASKED} ('a/step-1.x', 1, 'job', {_OF})",
    "approvals_number_positive": f"{_ASKED} ('a/step-1.x', 0, 'job', {_OF})",
    "approvals_job_fkey": f"{_ASKED} ('a/step-2.x', 1, 'nothing', {_OF})",
    "approvals_state_known": "UPDATE approvals SET state = 'asleep'",
    "approvals_decided_by_a_person": "UPDATE approvals SET state = 'approved'",
    "approvals_used_exactly_with_time": "UPDATE approvals SET state = 'used', decided_at = now(), "
    "decided_by = 'rita'",
}
SEED = (f"{_ASKED} ('a/step-1.x', 1, 'job', {_OF})",)
