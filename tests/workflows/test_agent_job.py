"""A job's course, on a real Temporal server and a real ledger."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType, PendingActivityState

from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.job import Budget
from agentjobs.domain.states import JobState
from agentjobs.ledger.dead_letters import Action
from agentjobs.tools.tickets import CreateTicket, SearchTickets
from agentjobs.tools.tool import ToolContext, ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.fakes import ScriptedProvider, create_ticket
from tests.world import World, eventually


async def test_a_request_becomes_one_ticket_and_an_answer(world: World) -> None:
    job_id = await world.submit()

    async with world.running():
        job = await world.until(job_id)

    assert job.state is JobState.SUCCEEDED
    assert job.result is not None
    assert job.result["answer"] == "Thank you."
    assert [effect["tool"] for effect in job.result["effects"]] == ["create_ticket"]
    assert await world.ticket_count() == 1


async def test_steps_have_the_logical_keys_of_the_contract(world: World) -> None:
    job_id = await world.submit()

    async with world.running():
        await world.until(job_id)

    effects = await world.ledger.jobs.effects(job_id)
    prefix = f"agent-job-{job_id}/"
    assert [effect.key for effect in effects] == [
        prefix + step for step in ("plan", "step-1.model", "step-1.create_ticket", "step-2.model", "answer")
    ]


async def test_every_call_is_accounted_for(world: World) -> None:
    job_id = await world.submit()

    async with world.running():
        job = await world.until(job_id)

    assert (job.usage.tokens_in, job.usage.tokens_out) == (40, 20)  # plan, two steps, answer
    assert job.tokens_reserved == 0


async def test_a_transient_failure_is_retried_and_recorded(world: World) -> None:
    busy = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=0.05)
    job_id = await world.submit()

    async with world.running(ScriptedProvider(errors=(busy,))):
        job = await world.until(job_id)

    attempts = await world.ledger.jobs.attempts(job_id)
    assert job.state is JobState.SUCCEEDED
    assert [(a.step, a.outcome, a.category) for a in attempts[:2]] == [
        ("plan", "failed", "rate_limited"),
        ("plan", "succeeded", None),
    ]


async def test_a_waiting_job_says_so(world: World) -> None:
    busy = RetryableError(Category.UNAVAILABLE, "the model is away", retry_after_seconds=600)
    job_id = await world.submit()

    async with world.running(ScriptedProvider(errors=(busy,))):
        job = await world.until(job_id, JobState.RETRY_WAIT)
        await world.workflow(job_id).terminate()

    assert job.failure is not None
    assert (job.failure.category, job.failure.message) == (Category.UNAVAILABLE, "the model is away")
    assert job.next_attempt_at is not None
    assert 599 < (job.next_attempt_at - job.updated_at).total_seconds() < 661


async def test_a_permanent_failure_is_tried_once_and_alerted(world: World) -> None:
    refused = PermanentError(Category.CONTENT_REFUSED, "the model refused the request")
    provider = ScriptedProvider(errors=(refused,))
    job_id = await world.submit()

    async with world.running(provider):
        job = await world.until(job_id, JobState.DEAD)
        letter = await world.until_alerted(job_id)

    assert provider.calls == ["plan"]
    assert job.failure is not None
    assert job.failure.reason is Category.CONTENT_REFUSED
    assert (letter.generation, letter.reason, letter.step) == (1, "content_refused", "plan")


async def test_a_tool_that_the_agent_has_not_is_refused_before_anything_happens(world: World) -> None:
    job_id = await world.submit()
    stray = create_ticket().model_copy(update={"tool": "finalize_job"})

    async with world.running(ScriptedProvider(steps=(stray,))):
        job = await world.until(job_id)

    assert job.failure is not None
    assert job.failure.reason is Category.UNKNOWN_TOOL
    assert await world.ticket_count() == 0


async def test_an_endless_tool_loop_ends_at_the_step_limit(world: World) -> None:
    job_id = await world.submit()

    async with world.running(ScriptedProvider(steps=(create_ticket(),) * 50)):
        job = await world.until(job_id)

    assert job.failure is not None
    assert job.failure.reason is Category.BUDGET_EXCEEDED
    assert await world.ticket_count() == 6


async def test_a_job_without_money_left_makes_no_further_call(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit(budget=Budget(tokens=16_020))  # a call reserves 16,000 and costs 15

    async with world.running(provider):
        job = await world.until(job_id)

    assert job.failure is not None
    assert job.failure.reason is Category.BUDGET_EXCEEDED
    assert provider.calls == ["plan", "step"]


async def test_a_redrive_does_only_what_is_missing(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit(user="bob")  # bob has no grant

    async with world.running(provider):
        dead = await world.until(job_id, JobState.DEAD)
        called_before = list(provider.calls)
        await world.grant("bob")
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert dead.failure is not None
    assert dead.failure.reason is Category.ACCESS_DENIED
    assert called_before == ["plan", "step"]
    assert provider.calls == ["plan", "step", "step", "answer"]  # what was paid for is not paid again
    assert job.generation == 1
    assert await world.ticket_count() == 1


async def test_a_second_death_is_the_second_generation_of_the_same_letter(world: World) -> None:
    job_id = await world.submit(user="bob")

    async with world.running():
        await world.until(job_id, JobState.DEAD)
        await world.order("redrive", job_id)
        letter = await world.until_alerted(job_id, generation=2)

    assert letter.generation == 2
    assert letter.state == "open"


async def test_a_discard_undoes_what_was_done_and_ends_the_job(world: World) -> None:
    two = (create_ticket(), create_ticket(subject="Second"))
    refused = PermanentError(Category.CONTENT_REFUSED, "no")
    provider = ScriptedProvider(steps=two)
    job_id = await world.submit()

    async with world.running(provider):
        provider.fail_at("answer", refused)
        await world.until(job_id, JobState.DEAD)
        await world.order("discard", job_id)
        job = await world.until(job_id, JobState.DISCARDED)

    assert job.result is not None
    assert [effect["state"] for effect in job.result["effects"]] == ["undone", "undone"]
    undone = [e.step for e in await world.ledger.jobs.effects(job_id) if e.step.startswith("undo.")]
    assert undone == ["undo.step-2.create_ticket", "undo.step-1.create_ticket"]
    assert await world.open_ticket_count() == 0


async def test_a_cancel_stops_the_job_and_undoes_its_ticket(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit()

    async with world.running(provider):
        provider.hold_at("answer")
        await provider.reached("answer")
        await world.cancel(job_id)
        job = await world.until(job_id)

    assert job.state is JobState.CANCELLED
    assert job.result is not None
    assert [effect["state"] for effect in job.result["effects"]] == ["undone"]
    assert await world.open_ticket_count() == 0


async def test_a_job_cancelled_before_its_start_never_runs(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit()
    await world.cancel(job_id)

    async with world.running(provider):
        other = await world.submit()
        await world.until(other)

    assert (await world.job(job_id)).state is JobState.CANCELLED
    assert len(provider.calls) == 4  # the other job's


async def test_a_cancel_in_the_temporal_ui_counts_like_one_through_the_api(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit()

    async with world.running(provider):
        provider.hold_at("answer")
        await provider.reached("answer")
        await world.workflow(job_id).cancel()
        job = await world.until(job_id)

    assert job.state is JobState.CANCELLED


async def test_a_dead_job_cancelled_in_the_temporal_ui_is_discarded(world: World) -> None:
    job_id = await world.submit(user="bob")

    async with world.running():
        await world.until(job_id, JobState.DEAD)
        await world.workflow(job_id).cancel()
        job = await world.until(job_id, JobState.DISCARDED)

    assert job.finalized_at is not None


async def test_a_terminated_job_can_still_be_redriven_without_repeating_anything(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit(user="bob")

    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await world.workflow(job_id).terminate()
        await world.grant("bob")
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)

    assert provider.calls == ["plan", "step", "step", "answer"]
    assert await world.ticket_count() == 1


async def test_a_cancel_that_meets_the_death_is_not_lost(world: World) -> None:
    # The death is on record; its workflow learns of it only by the record's second attempt, up to a second later.
    world.failpoints = "outcome.after_record=raise@1"
    job_id = await world.submit(user="bob")

    async with world.running():
        await world.until(job_id, JobState.DEAD)
        await world.workflow(job_id).cancel()
        job = await world.until(job_id, JobState.DISCARDED)

    assert job.finalized_at is not None


async def test_a_stopping_worker_finishes_the_call_that_it_is_in(world: World) -> None:
    provider = ScriptedProvider()
    job_id = await world.submit()

    async with world.running(provider):
        provider.hold_at("answer")
        await provider.reached("answer")
        asyncio.get_running_loop().call_later(0.5, provider.release)  # when the worker is stopping already
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)

    answers = [a.outcome for a in await world.ledger.jobs.attempts(job_id) if a.step == "answer"]
    assert answers == ["succeeded"]


async def test_a_job_goes_the_same_way_without_the_workflow_cache(world: World) -> None:
    job_id = await world.submit(user="bob")
    world.cached_workflows = 0  # so every task replays the whole history

    async with world.running():
        await world.until(job_id, JobState.DEAD)
        await world.grant("bob")
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert job.generation == 1
    assert await world.ticket_count() == 1


@pytest.mark.parametrize(
    "error",
    [
        RetryableError(Category.UNAVAILABLE, "the model is away"),
        PermanentError(Category.CONTENT_REFUSED, "the model refused the request"),
    ],
    ids=["retryable", "permanent"],
)
async def test_a_call_that_fails_after_a_cancel_is_no_death(world: World, error: Exception) -> None:
    provider = ScriptedProvider()
    provider.hold_at("answer")
    job_id = await world.submit()

    async def cancel_is_asked() -> bool:
        described = await world.workflow(job_id).describe()
        pending = described.raw_description.pending_activities
        return any(one.state == PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED for one in pending)

    async with world.running(provider):
        await provider.reached("answer")
        await world.cancel(job_id)
        await eventually(cancel_is_asked, "the cancel to reach the call")
        provider.fail_at("answer", error)
        provider.release()
        job = await world.until(job_id)

    assert job.state is JobState.CANCELLED
    assert job.generation == 0
    assert await world.open_ticket_count() == 0


class StubbornTickets(CreateTicket):
    """Tickets that cannot be closed, as long as they are stubborn."""

    stubborn = True

    async def undo(self, receipt: dict[str, Any], context: ToolContext) -> None:
        """Refuse, or close it."""
        if self.stubborn:
            raise PermanentError(Category.ACCESS_DENIED, "the tracker does not let us close it")
        await super().undo(receipt, context)


class HeldTickets(CreateTicket):
    """The first try to close a ticket is held, and fails in a way that may pass."""

    def __init__(self, tracker: PostgresTracker) -> None:
        super().__init__(tracker)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def undo(self, receipt: dict[str, Any], context: ToolContext) -> None:
        """Fail once, or close it."""
        if not self.go_on.is_set():
            self.reached.set()
            await self.go_on.wait()
            raise RetryableError(Category.UNAVAILABLE, "the tracker is away", retry_after_seconds=0.05)
        await super().undo(receipt, context)


async def test_an_undo_is_tried_again_also_when_a_cancel_comes_meanwhile(world: World) -> None:
    tracker = PostgresTracker(world.ledger.tickets)
    tickets = HeldTickets(tracker)
    provider = ScriptedProvider()
    provider.fail_at("answer", PermanentError(Category.CONTENT_REFUSED, "no"))
    job_id = await world.submit()

    async def cancel_is_asked() -> bool:
        asked = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
        return any([e.event_type == asked async for e in world.workflow(job_id).fetch_history_events()])

    async with world.running(provider, ToolRegistry((SearchTickets(tracker), tickets))):
        await world.until_alerted(job_id)
        await world.order("discard", job_id)
        await tickets.reached.wait()
        await world.workflow(job_id).cancel()
        await eventually(cancel_is_asked, "the cancel")
        tickets.go_on.set()
        job = await world.until(job_id, JobState.DISCARDED)

    assert job.generation == 1
    assert await world.open_ticket_count() == 0


@pytest.mark.parametrize(("word", "end"), [("redrive", JobState.CANCELLED), ("discard", JobState.DISCARDED)])
async def test_a_discard_that_could_not_be_undone_comes_to_an_end(
    world: World, word: Action, end: JobState
) -> None:
    tracker = PostgresTracker(world.ledger.tickets)
    tickets = StubbornTickets(tracker)
    provider = ScriptedProvider()
    provider.fail_at("answer", PermanentError(Category.CONTENT_REFUSED, "no"))
    job_id = await world.submit()

    async with world.running(provider, ToolRegistry((SearchTickets(tracker), tickets))):
        await world.until_alerted(job_id)
        await world.order("discard", job_id)
        letter = await world.until_alerted(job_id, generation=2)
        tickets.stubborn = False
        await world.order(word, job_id)
        job = await world.until(job_id, JobState.CANCELLED, JobState.DISCARDED, JobState.SUCCEEDED)

    assert letter.reason == "compensation_failed"
    assert job.state is end
    # A redrive finishes the undo; a second discard gives it up, and says so.
    assert await world.open_ticket_count() == (0 if word == "redrive" else 1)
    assert job.result is not None
    said = [(effect["outcome"], effect["because"]) for effect in job.result["effects"]]
    assert said == [("undone", None) if word == "redrive" else ("stays", "undo_given_up")]
