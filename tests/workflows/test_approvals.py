"""A tool call that a person approves first: on a real Temporal server and a real ledger."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from agentjobs.domain.approvals import ApprovalState, Decision
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.approvals import ApprovalNotOpen, ApprovalRecord, OtherCall, Word
from agentjobs.temporal import JOB_STATE
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.fakes import ScriptedProvider
from tests.world import World, eventually

STEP = "step-1.create_ticket"
SUBJECT = "Printer on fire"


def tools(world: World, seconds: float = 600) -> ToolRegistry:
    """The built-in ones; tickets need an approval."""
    return built_in_tools(PostgresTracker(world.ledger.tickets), {"create_ticket": seconds})


def running(world: World, seconds: float = 600) -> AbstractAsyncContextManager[None]:
    """A worker and a relay."""
    return world.running(tools=tools(world, seconds))


async def asked(world: World, job_id: str) -> ApprovalRecord:
    """The request, once the job waits for it."""
    await world.until(job_id, JobState.WAITING_APPROVAL)
    *_, latest = await world.ledger.approvals.of_job(world.tenant, job_id)
    return latest


async def decide(
    world: World, job_id: str, decision: Decision, *, actor: str = "rita", fingerprint: str | None = None
) -> bool:
    """A reviewer's word."""
    word = Word(decision=decision, actor=actor, note="seen", fingerprint=fingerprint)
    return await world.ledger.approvals.decide(world.tenant, job_id, STEP, word)


async def test_the_call_waits_and_is_made_once_it_is_approved(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        request = await asked(world, job_id)
        before = await world.ticket_count()
        await decide(world, job_id, Decision.APPROVE, fingerprint=request.fingerprint)
        job = await world.until(job_id)

    (used,) = await world.ledger.approvals.of_job(world.tenant, job_id)
    assert (request.tool, request.arguments and request.arguments["subject"]) == ("create_ticket", SUBJECT)
    assert (before, await world.ticket_count(), job.state) == (0, 1, JobState.SUCCEEDED)
    assert (used.state, used.decided_by, used.is_open) == (ApprovalState.USED, "rita", False)


async def test_the_job_says_what_it_waits_for_in_the_temporal_ui_too(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)

        async def shown() -> bool:
            described = await world.workflow(job_id).describe()
            return described.typed_search_attributes[JOB_STATE] == "waiting_approval"

        # The ledger says it first: the workflow's next task follows.
        await eventually(shown, "the search attribute to say what the ledger says", world.between)
        await world.cancel(job_id)
        await world.until(job_id)
    events = [event.type for event in await world.ledger.jobs.events(job_id)]
    assert "approval_requested" in events


async def test_a_refused_call_is_never_made_and_a_redrive_asks_again(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)
        await decide(world, job_id, Decision.REJECT)
        dead = await world.until(job_id, JobState.DEAD)
        none = await world.ticket_count()
        await world.order("redrive", job_id)
        again = await asked(world, job_id)
        await decide(world, job_id, Decision.APPROVE)
        job = await world.until(job_id)

    assert dead.failure is not None
    assert (dead.failure.reason, none) == (Category.ACCESS_DENIED, 0)
    assert again.state is ApprovalState.REQUESTED
    assert (job.state, await world.ticket_count()) == (JobState.SUCCEEDED, 1)


async def test_without_an_answer_in_time_the_job_is_dead_and_a_late_one_is_refused(world: World) -> None:
    job_id = await world.submit()

    async with running(world, seconds=1):
        dead = await world.until(job_id, JobState.DEAD)

    with pytest.raises(ApprovalNotOpen):
        await decide(world, job_id, Decision.APPROVE)
    assert dead.failure is not None
    assert (dead.failure.reason, await world.ticket_count()) == (Category.DEADLINE_EXCEEDED, 0)


async def test_of_two_reviewers_at_the_same_moment_one_decides(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)
        outcomes = await asyncio.gather(
            *(decide(world, job_id, Decision.APPROVE, actor=f"rita-{n}") for n in range(10)),
            *(decide(world, job_id, Decision.REJECT, actor=f"rolf-{n}") for n in range(10)),
            return_exceptions=True,
        )
        await world.until(job_id)

    assert sum(outcome is True for outcome in outcomes) == 1
    assert sum(isinstance(outcome, ApprovalNotOpen) for outcome in outcomes) == 19


async def test_the_same_word_of_the_same_person_may_be_said_twice(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)
        said = [await decide(world, job_id, Decision.APPROVE) for _ in range(2)]
        await world.until(job_id)

    assert said == [True, True]
    assert await world.ticket_count() == 1


async def test_a_word_on_another_call_than_the_one_that_waits_is_refused(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)
        with pytest.raises(OtherCall):
            await decide(world, job_id, Decision.APPROVE, fingerprint="0" * 64)
        still = await world.job(job_id)
        await world.cancel(job_id)
        ended = await world.until(job_id)

    assert (still.state, ended.state) == (JobState.WAITING_APPROVAL, JobState.CANCELLED)


async def test_a_cancelled_job_takes_no_decision_and_makes_no_call(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)
        await world.cancel(job_id)
        with pytest.raises(ApprovalNotOpen):
            await decide(world, job_id, Decision.APPROVE)
        job = await world.until(job_id)

    (request,) = await world.ledger.approvals.of_job(world.tenant, job_id)
    assert (job.state, await world.ticket_count()) == (JobState.CANCELLED, 0)
    assert (request.state, request.is_open) == (ApprovalState.WITHDRAWN, False)


async def test_a_decision_that_comes_while_no_worker_runs_is_carried_out_later(world: World) -> None:
    job_id = await world.submit()
    async with running(world):
        await asked(world, job_id)
    await decide(world, job_id, Decision.APPROVE)

    async with running(world):
        job = await world.until(job_id)

    assert (job.state, await world.ticket_count()) == (JobState.SUCCEEDED, 1)


async def test_an_approved_call_that_failed_for_good_needs_no_second_approval_after_a_redrive(
    world: World,
) -> None:
    job_id = await world.submit(user="bob")  # bob has no grant

    async with running(world):
        await asked(world, job_id)
        await decide(world, job_id, Decision.APPROVE)
        await world.until(job_id, JobState.DEAD)
        await world.grant("bob")
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED, JobState.WAITING_APPROVAL)

    assert job.state is JobState.SUCCEEDED
    assert len(await world.ledger.approvals.of_job(world.tenant, job_id)) == 1


async def test_a_tool_without_need_of_approval_asks_nobody(world: World) -> None:
    job_id = await world.submit()

    async with world.running(ScriptedProvider()):
        await world.until(job_id)

    assert await world.ledger.approvals.of_job(world.tenant, job_id) == []


async def test_what_waits_is_listed_for_the_tenant_alone(world: World) -> None:
    job_id = await world.submit()

    async with running(world):
        await asked(world, job_id)

        async def listed() -> list[str]:
            return [request.job_id for request in await world.ledger.approvals.open(world.tenant)]

        await eventually(listed, "the request to be listed")
        mine, others = await listed(), await world.ledger.approvals.open("somebody-else")
        await world.cancel(job_id)
        await world.until(job_id)
        after = await listed()

    assert (mine, others, after) == ([job_id], [], [])
