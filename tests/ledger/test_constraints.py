"""Every named constraint of the schema refuses what it is there to refuse, and says its name."""

from collections.abc import AsyncIterator
from itertools import product

import asyncpg
import pytest

from agentjobs.domain.states import TRANSITIONS, JobState
from agentjobs.ledger.ledger import Ledger
from tests.ledger import (
    approval_violations,
    later_violations,
    queue_violations,
    quota_violations,
    redrive_violations,
    retention_violations,
    tracing_violations,
    webhook_violations,
)
from tests.ledger.scene import Scene

_ATTEMPT = (
    "INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, outcome, category, finished_at) "
)
_EFFECT = "INSERT INTO effects (key, job_id, step, kind, name, effect_class, fingerprint) VALUES "
_JOB = (
    'INSERT INTO jobs (id, tenant, "user", agent, policy_version, origin, input, priority, deadline_seconds, '
    "deadline_at) VALUES "
)
_DEATH = "INSERT INTO deaths (job_id, generation, tenant, agent, policy_version, category, reason, worker) VALUES "
_KEY = 'INSERT INTO api_keys (id, tenant, "user", roles, key_hash) VALUES '
_LETTER = (
    "INSERT INTO dead_letters (id, tenant, generation, category, reason, message, agent, policy_version, worker, "
    "origin, review_id, attempts, effects_done, effects_in_doubt) VALUES "
)
_MONTH = "INSERT INTO tenant_months (tenant, month) VALUES "
_HELD = "INSERT INTO tenant_months (tenant, month, tokens_reserved, usd_reserved) VALUES "
_REUSED = 'INSERT INTO idempotency_keys (tenant, "user", operation, key, fingerprint, job_id) VALUES '
_TICKET = "INSERT INTO tickets (tenant, operation_key, job_id, subject, body, category, urgency, language) VALUES "

VIOLATIONS = {
    "tenants_pkey": "INSERT INTO tenants (id) VALUES ('acme')",
    "tenants_id_is_safe": "INSERT INTO tenants (id) VALUES ('a/b')",
    "tenants_running_cap_positive": "UPDATE tenants SET running_cap = 0",
    "tenants_monthly_tokens_positive": "UPDATE tenants SET monthly_tokens = 0",
    "tenants_monthly_usd_positive": "UPDATE tenants SET monthly_usd = 0",
    "tenant_months_pkey": _MONTH + "('acme', '2026-01-01'), ('acme', '2026-01-01')",
    "tenant_months_tenant_fkey": _MONTH + "('nobody', '2026-01-01')",
    "tenant_months_month_is_first_day": _MONTH + "('acme', '2026-01-02')",
    "tenant_months_tokens_reserved_not_negative": _HELD + "('acme', '2026-01-01', -1, 0)",
    "tenant_months_usd_reserved_not_negative": _HELD + "('acme', '2026-01-01', 0, -1)",
    "api_keys_pkey": _KEY + "('key', 'acme', 'ann', '{submit}', 'other')",
    "api_keys_tenant_fkey": _KEY + "('new', 'nobody', 'ann', '{submit}', 'other')",
    "api_keys_user_is_safe": _KEY + "('new', 'acme', 'a b', '{submit}', 'other')",
    "api_keys_roles_known": _KEY + "('new', 'acme', 'ann', '{submit,root}', 'other')",
    "api_keys_hash_unique": _KEY + "('new', 'acme', 'ann', '{submit}', 'hash')",
    "grants_pkey": "INSERT INTO grants VALUES ('acme', 'ann', 'tickets:create', 'test')",
    "grants_tenant_fkey": "INSERT INTO grants VALUES ('nobody', 'ann', 'tickets:create', 'test')",
    "grants_action_form": "INSERT INTO grants VALUES ('acme', 'ann', 'everything', 'test')",
    "jobs_pkey": _JOB + "('job', 'acme', 'ann', 'a', '1', 'o', '{}', 3, 60, now())",
    "jobs_id_is_safe": _JOB + "('a/b', 'acme', 'ann', 'a', '1', 'o', '{}', 3, 60, now())",
    "jobs_tenant_fkey": _JOB + "('new', 'nobody', 'ann', 'a', '1', 'o', '{}', 3, 60, now())",
    "jobs_priority_range": "UPDATE jobs SET priority = 6",
    "jobs_deadline_positive": "UPDATE jobs SET deadline_seconds = 0",
    "jobs_tokens_reserved_not_negative": "UPDATE jobs SET tokens_reserved = -1",
    "jobs_usd_reserved_not_negative": "UPDATE jobs SET usd_reserved = -0.000000001",
    "jobs_budget_steps_positive": "UPDATE jobs SET budget_steps = 0",
    "jobs_trace_id_form": "UPDATE jobs SET trace_id = 'trace'",
    "jobs_state_known": "UPDATE jobs SET state = 'paused'",
    "jobs_transition_allowed": "UPDATE jobs SET state = 'pending'",
    "jobs_finalized_exactly_when_final": "UPDATE jobs SET finalized_at = now()",
    "jobs_next_attempt_exactly_in_retry_wait": "UPDATE jobs SET next_attempt_at = now()",
    "jobs_dead_has_failure": "UPDATE jobs SET state = 'dead'",
    "jobs_succeeded_has_result": "UPDATE jobs SET state = 'succeeded', finalized_at = now()",
    "idempotency_keys_pkey": _REUSED + "('acme', 'ann', 'submit', 'k1', 'f', 'job')",
    "idempotency_keys_job_fkey": _REUSED + "('acme', 'ann', 'submit', 'k2', 'f', 'nothing')",
    "outbox_pkey": "INSERT INTO outbox (id, topic, job_id, tenant) OVERRIDING SYSTEM VALUE "
    "SELECT id, topic, job_id, tenant FROM outbox",
    "outbox_topic_known": "INSERT INTO outbox (topic, job_id, tenant) VALUES ('sing', 'job', 'acme')",
    "outbox_job_fkey": "INSERT INTO outbox (topic, job_id, tenant) VALUES ('start_job', 'nothing', 'acme')",
    "effects_pkey": _EFFECT + "('done', 'job', 's', 'tool', 'n', 'unsafe', 'f')",
    "effects_job_fkey": _EFFECT + "('new', 'nothing', 's', 'tool', 'n', 'unsafe', 'f')",
    "effects_kind_known": _EFFECT + "('new', 'job', 's', 'dance', 'n', 'unsafe', 'f')",
    "effects_class_known": _EFFECT + "('new', 'job', 's', 'tool', 'n', 'harmless', 'f')",
    "effects_state_known": "UPDATE effects SET state = 'perhaps' WHERE key = 'begun'",
    "effects_generation_positive": "UPDATE effects SET generation = 0",
    "effects_response_has_model": "UPDATE effects SET response_id = 'r'",
    "effects_receipt_exactly_when_done": "UPDATE effects SET state = 'completed' WHERE key = 'begun'",
    "attempts_pkey": "INSERT INTO attempts (id, job_id, step, effect_key, run_id, attempt, worker) "
    "OVERRIDING SYSTEM VALUE SELECT id, job_id, step, effect_key, run_id, attempt, worker FROM attempts",
    "attempts_job_fkey": _ATTEMPT + "VALUES ('nothing', 's', 'k', 'r', 1, 'w', 'running', NULL, NULL)",
    "attempts_outcome_known": _ATTEMPT + "VALUES ('job', 's', 'k', 'r', 1, 'w', 'bored', NULL, now())",
    "attempts_finished_exactly_when_over": _ATTEMPT
    + "VALUES ('job', 's', 'k', 'r', 1, 'w', 'crashed', NULL, NULL)",
    "attempts_failure_has_category": _ATTEMPT + "VALUES ('job', 's', 'k', 'r', 1, 'w', 'failed', NULL, now())",
    "dead_letters_pkey": _LETTER + "('dead', 'acme', 1, 'c', 'r', 'm', 'a', '1', 'w', 'o', 'i', 0, '[]', '[]')",
    "dead_letters_job_fkey": _LETTER
    + "('nothing', 'acme', 1, 'c', 'r', 'm', 'a', '1', 'w', 'o', 'i', 0, '[]', '[]')",
    "dead_letters_generation_positive": "UPDATE dead_letters SET generation = 0",
    "dead_letters_state_known": "UPDATE dead_letters SET state = 'lost'",
    "dead_letters_resolved_exactly_when_closed": "UPDATE dead_letters SET state = 'redriven'",
    "deaths_pkey": _DEATH + "('dead', 1, 'acme', 'a', '1', 'c', 'r', 'w')",
    "deaths_job_fkey": _DEATH + "('nothing', 1, 'acme', 'a', '1', 'c', 'r', 'w')",
    "deaths_generation_positive": "UPDATE deaths SET generation = 0",
    "deaths_resolution_known": "UPDATE deaths SET resolution = 'forgotten', resolved_at = now()",
    "deaths_resolved_exactly_when_decided": "UPDATE deaths SET resolved_at = now()",
    "deaths_outcome_known": "UPDATE deaths SET resolution = 'redriven', resolved_at = now(), outcome = 'odd', "
    "outcome_at = now()",
    "deaths_outcome_has_time": "UPDATE deaths SET resolution = 'redriven', resolved_at = now(), "
    "outcome = 'recovered'",
    "deaths_outcome_of_a_redrive": "UPDATE deaths SET outcome = 'recovered', outcome_at = now()",
    "job_events_pkey": "INSERT INTO job_events (job_id, seq, type) VALUES ('job', 1, 'accepted')",
    "job_events_job_fkey": "INSERT INTO job_events (job_id, seq, type) VALUES ('nothing', 1, 'accepted')",
    "audit_log_pkey": "INSERT INTO audit_log (id, tenant, actor, action, target) OVERRIDING SYSTEM VALUE "
    "SELECT id, tenant, actor, action, target FROM audit_log",
    "tickets_pkey": _TICKET.replace("(tenant", "(id, tenant").replace("VALUES", "OVERRIDING SYSTEM VALUE SELECT")
    + "id, tenant, 'op2', job_id, 's', 'b', 'c', 'u', 'l' FROM tickets",
    "tickets_tenant_fkey": _TICKET + "('nobody', 'op2', 'job', 's', 'b', 'c', 'u', 'l')",
    "tickets_one_per_operation": _TICKET + "('acme', 'op', 'job', 's', 'b', 'c', 'u', 'l')",
    "tickets_subject_not_blank": _TICKET + "('acme', 'op2', 'job', '  ', 'b', 'c', 'u', 'l')",
    "tickets_state_known": "UPDATE tickets SET state = 'pending'",
    "tickets_closed_exactly_when_closed": "UPDATE tickets SET state = 'closed'",
    "workers_pkey": "INSERT INTO workers (id, number, identity) VALUES ('w#1', 2, 'w')",
    "workers_number_unique": "INSERT INTO workers (id, number, identity) VALUES ('w#2', 1, 'w')",
    **later_violations.VIOLATIONS,
    **approval_violations.VIOLATIONS,
    **redrive_violations.VIOLATIONS,
    **retention_violations.VIOLATIONS,
    **quota_violations.VIOLATIONS,
    **queue_violations.VIOLATIONS,
    **tracing_violations.VIOLATIONS,
    **webhook_violations.VIOLATIONS,
}
SEED = (
    "INSERT INTO workers (id, number, identity) VALUES ('w#1', 1, 'w')",
    f"{_KEY} ('key', 'acme', 'ann', '{{submit}}', 'hash')",
    "INSERT INTO grants VALUES ('acme', 'ann', 'tickets:create', 'test')",
    f"{_JOB} ('job', 'acme', 'ann', 'a', '1', 'o', '{{}}', 3, 60, now()), "
    "('dead', 'acme', 'ann', 'a', '1', 'o', '{}', 3, 60, now())",
    "UPDATE jobs SET state = 'running' WHERE id = 'job'",
    f"{_REUSED} ('acme', 'ann', 'submit', 'k1', 'f', 'job')",
    "INSERT INTO outbox (topic, job_id, tenant) VALUES ('start_job', 'job', 'acme')",
    f"{_EFFECT} ('done', 'job', 's', 'tool', 'n', 'unsafe', 'f')",
    f"{_EFFECT} ('begun', 'job', 's2', 'tool', 'n', 'unsafe', 'f')",
    "UPDATE effects SET state = 'completed', result = '{}', completed_at = now() WHERE key = 'done'",
    f"{_ATTEMPT} VALUES ('job', 's', 'done', 'r', 1, 'w', 'running', NULL, NULL)",
    f"{_LETTER} ('dead', 'acme', 1, 'c', 'r', 'm', 'a', '1', 'w', 'o', 'i', 0, '[]', '[]')",
    f"{_DEATH} ('dead', 1, 'acme', 'a', '1', 'c', 'r', 'w')",
    "INSERT INTO job_events (job_id, seq, type) VALUES ('job', 1, 'accepted')",
    "INSERT INTO audit_log (tenant, actor, action, target) VALUES ('acme', 'ann', 'cancel', 'job')",
    f"{_TICKET} ('acme', 'op', 'job', 's', 'b', 'c', 'u', 'l')",
    *later_violations.SEED,
    *approval_violations.SEED,
    *redrive_violations.SEED,
    *retention_violations.SEED,
    *queue_violations.SEED,
    *webhook_violations.SEED,
)
MOVES = {(before, after) for before, following in TRANSITIONS.items() for after in following}


@pytest.fixture
async def seeded(scene: Scene) -> AsyncIterator[Scene]:
    """One valid row in each table."""
    for statement in SEED:
        await scene.execute(statement)
    yield scene


async def test_every_named_constraint_has_a_case_here(ledger: Ledger) -> None:
    # Not-null constraints say their column and need no case each.
    named = await ledger.database.pool.fetch(
        "SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace "
        "AND contype IN ('c', 'f', 'p', 'u') AND conrelid <> 'schema_migrations'::regclass"
    )

    assert {row["conname"] for row in named} == set(VIOLATIONS)


@pytest.mark.parametrize(("name", "statement"), VIOLATIONS.items(), ids=VIOLATIONS)
async def test_a_constraint_refuses_and_says_its_name(seeded: Scene, name: str, statement: str) -> None:
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
        await seeded.execute(statement)

    assert refused.value.as_dict()["constraint_name"] == name


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("effects_receipt_exactly_when_done", "UPDATE effects SET result = '{}' WHERE key = 'begun'"),
        ("effects_receipt_exactly_when_done", "UPDATE effects SET completed_at = now() WHERE key = 'begun'"),
        ("effects_receipt_exactly_when_done", "UPDATE effects SET state = 'begun' WHERE key = 'done'"),
        ("jobs_finalized_exactly_when_final", "UPDATE jobs SET state = 'cancelled'"),
        ("jobs_next_attempt_exactly_in_retry_wait", "UPDATE jobs SET state = 'retry_wait' WHERE id = 'job'"),
        ("attempts_finished_exactly_when_over", "UPDATE attempts SET finished_at = now()"),
        ("attempts_failure_has_category", "UPDATE attempts SET category = 'bug'"),
        ("dead_letters_resolved_exactly_when_closed", "UPDATE dead_letters SET resolved_at = now()"),
        ("tickets_closed_exactly_when_closed", "UPDATE tickets SET closed_at = now()"),
        ("tickets_subject_not_blank", "UPDATE tickets SET subject = ''"),
        ("tickets_subject_not_blank", r"UPDATE tickets SET subject = E'\t\n '"),
        ("api_keys_roles_known", "UPDATE api_keys SET roles = '{}'"),
        ("grants_action_form", "UPDATE grants SET action = 'tickets:create more'"),
        ("tenants_id_is_safe", "INSERT INTO tenants (id) VALUES ('')"),
        ("tenants_id_is_safe", r"INSERT INTO tenants (id) VALUES (E'acme2\n')"),
    ],
)
async def test_a_rule_with_two_sides_holds_on_both(seeded: Scene, name: str, statement: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        await seeded.execute(statement)

    assert refused.value.as_dict()["constraint_name"] == name


async def test_the_database_takes_exactly_the_moves_of_the_table(scene: Scene) -> None:
    taken = set()
    for before, after in product(JobState, JobState):
        job = await scene.accept()
        await scene.move(job.id, before)
        try:
            await scene.set_state(job.id, after)
        except asyncpg.CheckViolationError as refused:
            assert refused.as_dict()["constraint_name"] == "jobs_transition_allowed"
        else:
            taken.add((before, after))

    assert taken == MOVES | {(state, state) for state in JobState}


@pytest.mark.parametrize("state", [state.value for state in JobState if state is not JobState.PENDING])
async def test_a_job_cannot_be_made_in_any_state_but_pending(scene: Scene, state: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await scene.execute(
            _JOB.replace("deadline_at)", "deadline_at, state)")
            + f"('new', 'acme', 'ann', 'a', '1', 'o', '{{}}', 3, 60, now(), '{state}')"
        )


async def test_a_writer_cannot_lie_about_the_state_before(scene: Scene) -> None:
    job = await scene.accept()

    with pytest.raises(asyncpg.CheckViolationError, match="jobs_transition_allowed"):
        await scene.execute(
            "UPDATE jobs SET state = 'succeeded', previous_state = 'running', result = '{}', finalized_at = now()"
        )

    assert (await scene.job(job.id)).state is JobState.PENDING
