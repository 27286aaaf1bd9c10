"""What the constraints of retention and erasure refuse; part of test_constraints.py."""

_ERASURE = 'INSERT INTO erasures (id, tenant, "user", job_id, requested_by) VALUES '

VIOLATIONS = {
    "jobs_content_removed_when_final": "UPDATE jobs SET content_removed_at = now()",
    "jobs_erased_without_content": "UPDATE jobs SET erased_at = now()",
    "jobs_workflow_looked_for_without_content": "UPDATE jobs SET workflow_look_at = now()",
    "erasures_pkey": f"{_ERASURE} ('e1', 'acme', 'ann', NULL, 'adam')",
    "erasures_tenant_fkey": f"{_ERASURE} ('new', 'nobody', 'ann', NULL, 'adam')",
    "erasures_of_one_thing": f"{_ERASURE} ('new', 'acme', 'ann', 'job', 'adam')",
}
SEED = (f"{_ERASURE} ('e1', 'acme', 'ann', NULL, 'adam')",)
