"""Short steps within the workflow task: their owner sees the same, and what fails goes on as an activity."""

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from activities import short_steps
from activities.inputs import ShortStepsDone
from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.records import AttemptRecord
from agentjobs.settings import Environment
from agentjobs.temporal import DATA_CONVERTER
from tests.fakes import ScriptedProvider
from tests.workflows.test_summaries import events
from tests.world import World, eventually
from workflows import fast_lane

BUSY = RetryableError(Category.UNAVAILABLE, "busy", retry_after_seconds=0.05)
SHORT_STEPS = ["plan", "step-1.model", "step-1.create_ticket", "step-2.model", "answer"]


async def history_of(world: World, job_id: str) -> list[HistoryEvent]:
    """All of it, so far."""
    return [event async for event in events(world.workflow(job_id))]


def activities_in(history: list[HistoryEvent]) -> list[str]:
    """The ids of those that the server knows of."""
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    return [e.activity_task_scheduled_event_attributes.activity_id for e in history if e.event_type == scheduled]


def stretches_in(history: list[HistoryEvent]) -> list[tuple[str, ...]]:
    """The short steps that share a marker, for each marker."""
    markers = [event.marker_recorded_event_attributes for event in history]
    results = [marker.details["result"].payloads for marker in markers if "result" in marker.details]
    return [DATA_CONVERTER.payload_converter.from_payload(payload, ShortStepsDone).steps for (payload,) in results]


async def told_of(world: World, job_id: str) -> tuple[list[tuple[str, int, str]], list[str]]:
    """What the owner sees of a job: its attempts, and the types of its events."""
    attempts = [_seen(attempt) for attempt in await world.ledger.jobs.attempts(job_id)]
    rows = await world.ledger.database.pool.fetch(
        "SELECT type FROM job_events WHERE job_id = $1 ORDER BY seq", job_id
    )
    return attempts, [row["type"] for row in rows]


def _seen(attempt: AttemptRecord) -> tuple[str, int, str]:
    return attempt.step, attempt.attempt, attempt.outcome


async def ended(world: World, provider: ScriptedProvider, state: JobState = JobState.SUCCEEDED) -> str:
    """A job's id, once it is in this state."""
    job_id = await world.submit()
    async with world.running(provider):
        await world.until(job_id, state)
        if state is JobState.SUCCEEDED:
            await world.workflow(job_id).result()
    return job_id


async def test_a_job_of_short_steps_is_one_workflow_task(world: World) -> None:
    job_id = await ended(world, ScriptedProvider(short=True))

    history = await history_of(world, job_id)
    tasks = [event for event in history if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    assert activities_in(history) == []
    assert stretches_in(history) == [(*SHORT_STEPS, "outcome")]
    assert (len(tasks), len(history)) == (1, 7)
    assert [step for step, _, _ in (await told_of(world, job_id))[0]] == SHORT_STEPS
    assert await world.ticket_count() == 1


async def test_its_owner_sees_the_same_as_of_one_in_the_regular_lane(world: World) -> None:
    fast = await ended(world, ScriptedProvider(short=True, errors=(BUSY,)))
    regular = await ended(world, ScriptedProvider(errors=(BUSY,)))

    assert await told_of(world, fast) == await told_of(world, regular)


async def test_a_model_that_takes_its_time_is_refused_once(world: World) -> None:
    job_id = await ended(world, ScriptedProvider())

    history = await history_of(world, job_id)
    assert activities_in(history) == ["plan", "step-1.model", "step-2.model", "answer"]
    assert stretches_in(history) == [(), ("step-1.create_ticket",), ("outcome",)]


@pytest.mark.parametrize("purpose", ["plan", "step", "answer"])
async def test_what_fails_for_now_goes_on_as_an_activity_under_the_same_key(world: World, purpose: str) -> None:
    provider = ScriptedProvider(short=True)
    provider.fail_at(purpose, BUSY)
    job_id = await world.submit()

    async with world.running(provider):
        await world.until(job_id, JobState.RETRY_WAIT)
        provider.fail_at(purpose, None)
        await world.until(job_id, JobState.SUCCEEDED)

    attempts, _ = await told_of(world, job_id)
    failed = [(step, number) for step, number, outcome in attempts if outcome == "failed"]
    assert [number for _, number in failed] == list(range(1, len(failed) + 1))
    assert (failed[0][0], len(failed) + 1, "succeeded") in attempts
    assert activities_in(await history_of(world, job_id)) == [failed[0][0]]
    assert await world.ticket_count() == 1


async def test_a_permanent_failure_is_tried_once_and_says_why(world: World) -> None:
    provider = ScriptedProvider(short=True)
    provider.fail_at("plan", PermanentError(Category.CONTENT_REFUSED, "the model refused the request"))

    job_id = await ended(world, provider, JobState.DEAD)

    job = await world.job(job_id)
    assert provider.calls == ["plan"]
    assert job.failure is not None
    assert (job.failure.reason, job.failure.step) == (Category.CONTENT_REFUSED, "plan")


async def test_a_refused_grant_dies_with_the_step_that_needed_it(world: World) -> None:
    job_id = await world.submit(user="bob")

    async with world.running(ScriptedProvider(short=True)):
        job = await world.until(job_id, JobState.DEAD)

    assert job.failure is not None
    assert (job.failure.reason, job.failure.step) == (Category.ACCESS_DENIED, "step-1.create_ticket")


async def test_a_cancel_during_the_wait_ends_the_job_without_another_attempt(world: World) -> None:
    provider = ScriptedProvider(short=True)
    provider.fail_at("answer", RetryableError(Category.UNAVAILABLE, "away", retry_after_seconds=600))
    job_id = await world.submit()

    async with world.running(provider):
        await world.until(job_id, JobState.RETRY_WAIT)
        await world.cancel(job_id)
        await world.until(job_id, JobState.CANCELLED)

    assert provider.calls.count("answer") == 1
    assert await world.open_ticket_count() == 0


async def test_a_step_that_is_not_short_after_all_goes_on_as_an_activity(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_lane, "SHORT", timedelta(seconds=0.3))
    world.environment = Environment.DEV  # in the sandbox the workflow has a module of its own
    provider, job_id = await held_at_answer(world)

    async with world.running(provider):
        await provider.reached("answer")
        await eventually_an_activity(world, job_id)
        provider.release()
        await world.until(job_id, JobState.SUCCEEDED)

    answers = [seen for seen in (await told_of(world, job_id))[0] if seen[0] == "answer"]
    assert [(number, outcome) for _, number, outcome in answers] == [(1, "abandoned"), (2, "succeeded")]
    assert activities_in(await history_of(world, job_id)) == ["answer"]


async def test_a_cancel_during_a_short_step_ends_the_job(world: World) -> None:
    provider, job_id = await held_at_answer(world)

    async with world.running(provider):
        await provider.reached("answer")
        await world.cancel(job_id)
        await world.until(job_id, JobState.CANCELLED)

    assert provider.calls.count("answer") == 1
    assert (await world.ticket_count(), await world.open_ticket_count()) == (1, 0)


async def test_a_cancel_in_temporal_alone_ends_the_job_as_well(world: World) -> None:
    provider, job_id = await held_at_answer(world)

    async with world.running(provider):
        await provider.reached("answer")
        await world.workflow(job_id).cancel()
        await world.until(job_id, JobState.CANCELLED)

    assert provider.calls.count("answer") == 1
    assert (await world.ticket_count(), await world.open_ticket_count()) == (1, 0)


async def test_short_steps_that_take_long_together_do_not_share_an_activity(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_steps, "SECONDS_TOGETHER", 0.000_001)

    job_id = await ended(world, ScriptedProvider(short=True))

    history = await history_of(world, job_id)
    assert stretches_in(history) == [(step,) for step in (*SHORT_STEPS, "outcome")]
    assert activities_in(history) == []


async def test_steps_that_were_lost_with_their_activity_go_on_as_activities(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_lane, "SHORT", timedelta(seconds=0.3))
    monkeypatch.setattr(short_steps, "PART_OF_LIMIT", 100)  # so that it does not tell in time
    world.environment = Environment.DEV
    provider, job_id = await held_at_answer(world)

    async with world.running(provider):
        await provider.reached("answer")
        await eventually_an_activity(world, job_id)
        provider.release()
        await world.until(job_id, JobState.SUCCEEDED)

    assert activities_in(await history_of(world, job_id)) == [*SHORT_STEPS, "outcome"]
    assert (await world.ticket_count(), provider.calls.count("plan")) == (1, 1)


async def held_at_answer(world: World) -> tuple[ScriptedProvider, str]:
    """Rules that do not come to an answer, and the id of a job for them."""
    provider = ScriptedProvider(short=True)
    provider.hold_at("answer")
    return provider, await world.submit()


async def eventually_an_activity(world: World, job_id: str) -> None:
    """Until the server knows of one."""

    async def look() -> bool:
        return bool(activities_in(await history_of(world, job_id)))

    await eventually(look, "an activity", world.between)
