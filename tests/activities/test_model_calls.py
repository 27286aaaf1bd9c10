"""Model calls: a reply is paid for once, kept only if it can be carried out, and counted against the budget."""

from typing import Any

import pytest

from activities.asking import Access
from activities.executor import Executor
from activities.inputs import JobRef, ModelStep
from activities.model_calls import ModelCalls
from agentjobs.agents.catalogue import built_in_agents
from agentjobs.domain import keys
from agentjobs.domain.admission import Limits
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.job import Budget
from agentjobs.providers.models import Models
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.trackers.postgres import PostgresTracker
from tests.activities.stage import FIRST, SECOND, Attempt, Stage, failed, failing_at, reference, told
from tests.fakes import USAGE, ScriptedProvider, create_ticket
from tests.world import NoFence


def model_calls(stage: Stage, provider: ScriptedProvider, attempt: Attempt) -> ModelCalls:
    """The model activities of a worker."""
    ledger = stage.scene.ledger
    executor = Executor(ledger, attempt.failpoints, NoFence())
    access = Access(Models(("scripted",), lambda _: provider), ledger, Limits())
    return ModelCalls(executor, access, built_in_agents(), built_in_tools(PostgresTracker(ledger.tickets)))


async def plan(stage: Stage, job_id: str, provider: ScriptedProvider, attempt: Attempt = FIRST) -> Any:
    """One attempt to plan."""
    calls = model_calls(stage, provider, attempt)
    return await attempt.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job_id)))


async def step(stage: Stage, job_id: str, provider: ScriptedProvider, attempt: Attempt = FIRST) -> Any:
    """One attempt to decide on the first step."""
    given = ModelStep(**reference(job_id), step=1)
    calls = model_calls(stage, provider, attempt)
    return await attempt.environment(keys.model_step(1)).run(calls.call_model, given)


async def test_a_reply_that_is_stored_is_not_paid_for_again(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = ScriptedProvider()
    await failed(plan(stage, job.id, provider, failing_at("effect.after_complete")))

    made = await plan(stage, job.id, provider, SECOND)

    assert (made.category, provider.calls) == ("incident", ["plan"])
    assert (await stage.scene.job(job.id)).usage == USAGE


async def test_a_reply_that_was_lost_is_asked_for_again_and_its_cost_stays_held(stage: Stage) -> None:
    job = await stage.scene.accept()
    provider = ScriptedProvider()
    await failed(plan(stage, job.id, provider, failing_at("effect.after_call")))

    await plan(stage, job.id, provider, SECOND)

    now = await stage.scene.job(job.id)
    assert provider.calls == ["plan", "plan"]
    assert (now.usage, now.tokens_reserved) == (USAGE, 16_000)


async def test_what_a_step_wants_is_told_without_its_arguments(stage: Stage) -> None:
    job = await stage.scene.accept()

    decided = await step(stage, job.id, ScriptedProvider())

    assert (decided.wanted.tool, decided.wanted.undoable) == ("create_ticket", True)
    assert "Printer" not in decided.model_dump_json()


@pytest.mark.parametrize(
    ("call", "category", "asked_again"),
    [
        (create_ticket().model_copy(update={"tool": "launch_rocket"}), "unknown_tool", False),
        (create_ticket(subject=""), "bad_output", True),
        (create_ticket(subject="\ud800"), "bad_output", True),
        (create_ticket(stray="field"), "bad_output", True),
        (create_ticket(body="x" * 100_000), "payload_too_large", False),
    ],
    ids=["tool", "empty", "surrogate", "stray", "large"],
)
async def test_a_reply_that_cannot_be_carried_out_is_not_kept(
    stage: Stage, call: Any, category: str, asked_again: bool
) -> None:
    job = await stage.scene.accept()

    answer = await told(step(stage, job.id, ScriptedProvider((call,))))

    assert answer == (category, asked_again)
    assert (await stage.scene.effect(job.id, keys.model_step(1))).result is None


async def test_a_call_that_does_not_fit_the_budget_is_not_made(stage: Stage) -> None:
    job = await stage.scene.accept(budget=Budget(tokens=15_999))
    provider = ScriptedProvider()

    answer = await told(plan(stage, job.id, provider))

    assert (answer, provider.calls) == (("budget_exceeded", False), [])


async def test_a_provider_that_is_busy_is_asked_again_when_it_said(stage: Stage) -> None:
    job = await stage.scene.accept()
    busy = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=7)

    error = await failed(plan(stage, job.id, ScriptedProvider(errors=(busy,))))

    assert error.next_retry_delay is not None
    assert 7 <= error.next_retry_delay.total_seconds() <= 8


async def test_an_agent_that_the_release_does_not_know_is_not_found(stage: Stage) -> None:
    job = await stage.scene.accept()
    calls = model_calls(stage, ScriptedProvider(), FIRST)
    unknown = JobRef(job_id=job.id, agent="support-triage", policy_version="0")

    answer = await told(FIRST.environment(keys.PLAN).run(calls.plan, unknown))

    assert answer == ("not_found", False)
