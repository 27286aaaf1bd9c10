"""What the Temporal UI shows of a job that waits for its next attempt; and that it is shown, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from activities.inputs import WaitNotice
from agentjobs.domain import keys
from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.providers.model import AnswerReply, Brief, Listener
from agentjobs.temporal import JOB_STATE, RETRY_WAIT_UNTIL
from tests.fakes import ScriptedProvider
from tests.world import World, eventually
from workflows.agent_job import AgentJob

AN_HOUR = timedelta(hours=1)


def in_time(after: timedelta = AN_HOUR, attempt: int = 1) -> WaitNotice:
    """A notice of a wait that ends so long from now."""
    until = datetime.now(UTC).replace(microsecond=0) + after
    return WaitNotice(step="plan", attempt=attempt, category="rate_limited", until=until)


async def tell(world: World, job_id: str, notice: WaitNotice) -> None:
    """As the relay does."""
    handle = world.client.get_workflow_handle_for(AgentJob.run, keys.workflow_id(job_id))
    await handle.signal(AgentJob.attempt_waits, notice)


async def shown(world: World, job_id: str) -> tuple[str | None, datetime | None]:
    """The job's state and the end of its wait, as the list of workflows has them."""
    attributes = (await world.workflow(job_id).describe()).typed_search_attributes
    return attributes.get(JOB_STATE), attributes.get(RETRY_WAIT_UNTIL)


async def details(world: World, job_id: str) -> str:
    """The line for people."""
    handle = world.workflow(job_id)
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


def shows(world: World, job_id: str, state: str) -> Callable[[], Awaitable[bool]]:
    """Whether the job is shown in this state."""

    async def look() -> bool:
        return (await shown(world, job_id))[0] == state

    return look


@asynccontextmanager
async def at_its(purpose: str, world: World, provider: ScriptedProvider) -> AsyncIterator[str]:
    """A job, while its call of this purpose is held; its id."""
    provider.hold_at(purpose)
    job_id = await world.submit()
    async with world.running(provider):
        await provider.reached(purpose)
        try:
            yield job_id
        finally:
            provider.release()  # or the worker waits for the call when it stops


@asynccontextmanager
async def waiting(world: World, provider: ScriptedProvider, purpose: str = "plan") -> AsyncIterator[str]:
    """A job that is shown to wait for an hour, while a call of it is held."""
    async with at_its(purpose, world, provider) as job_id:
        await tell(world, job_id, in_time())
        await eventually(shows(world, job_id, "retry_wait"), "the wait to be shown")
        yield job_id


class SlowToAnswer(ScriptedProvider):
    """Answers only when it is told to; everything before that goes on by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()

    async def answer(self, brief: Brief, listener: Listener | None = None) -> AnswerReply:
        """Wait, then answer."""
        await self.answers.wait()
        return await super().answer(brief, listener)


async def events(world: World, job_id: str) -> int:
    """How long the history of the job's latest run is."""
    return (await world.workflow(job_id).describe()).history_length


async def test_a_wait_is_shown_with_its_end_and_its_cause(world: World) -> None:
    provider, notice = ScriptedProvider(), in_time()

    async with at_its("plan", world, provider) as job_id:
        await tell(world, job_id, notice)
        await eventually(shows(world, job_id, "retry_wait"), "the wait to be shown")

        assert await shown(world, job_id) == ("retry_wait", notice.until)
        line = f"plan waits until {notice.until:%Y-%m-%d %H:%M:%S} UTC: rate_limited, after attempt 1"
        assert await details(world, job_id) == line


async def test_when_its_moment_has_passed_the_job_is_shown_as_running_again(world: World) -> None:
    provider = ScriptedProvider()

    async with at_its("plan", world, provider) as job_id:
        await tell(world, job_id, in_time(timedelta(seconds=3)))
        await eventually(shows(world, job_id, "retry_wait"), "the wait to be shown")
        await eventually(shows(world, job_id, "running"), "the wait to be over")

        assert await shown(world, job_id) == ("running", None)
        assert await details(world, job_id) == ""


async def test_when_its_step_is_done_the_job_is_shown_as_running_again(world: World) -> None:
    provider = SlowToAnswer()

    async with waiting(world, provider) as job_id:
        provider.release()
        await eventually(shows(world, job_id, "running"), "the wait to be over")
        line = await details(world, job_id)
        seen = await shown(world, job_id)
        provider.answers.set()

    assert (seen, line) == (("running", None), "")


async def test_a_later_wait_takes_the_place_of_the_one_that_is_shown(world: World) -> None:
    provider = ScriptedProvider()
    later = in_time(2 * AN_HOUR, attempt=2)

    async with waiting(world, provider) as job_id:
        await tell(world, job_id, later)

        async def replaced() -> bool:
            return (await shown(world, job_id))[1] == later.until

        await eventually(replaced, "the later wait to be shown")
        assert "after attempt 2" in await details(world, job_id)


async def test_a_notice_that_comes_too_late_is_ignored(world: World) -> None:
    provider = ScriptedProvider()

    async with at_its("plan", world, provider) as job_id:
        await tell(world, job_id, in_time(timedelta(seconds=-1)))
        provider.release()
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("succeeded", None)


async def test_a_job_that_is_shown_to_wait_succeeds(world: World) -> None:
    provider = ScriptedProvider()

    async with waiting(world, provider) as job_id:
        provider.release()
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("succeeded", None)


@pytest.mark.parametrize("purpose", ["plan", "answer"])
async def test_a_job_that_is_cancelled_while_it_waits_is_shown_as_cancelled(world: World, purpose: str) -> None:
    async with waiting(world, ScriptedProvider(), purpose) as job_id:
        await world.cancel(job_id)
        await world.until(job_id, JobState.CANCELLED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("cancelled", None)


async def test_a_job_that_waits_between_two_attempts_can_be_cancelled(world: World) -> None:
    busy = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=600)
    job_id = await world.submit()

    async with world.running(ScriptedProvider(errors=(busy,))):
        until = (await world.until(job_id, JobState.RETRY_WAIT)).next_attempt_at
        assert until is not None
        await tell(world, job_id, WaitNotice(step="plan", attempt=1, category="rate_limited", until=until))
        await eventually(shows(world, job_id, "retry_wait"), "the wait to be shown")
        await world.cancel(job_id)
        await world.until(job_id, JobState.CANCELLED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("cancelled", None)


@asynccontextmanager
async def dead_while_it_waits(world: World, provider: ScriptedProvider) -> AsyncIterator[str]:
    """A job that died although it was shown to wait: clocks differ, and an operator may have an attempt begin."""
    async with waiting(world, provider) as job_id:
        provider.fail_at("plan", PermanentError(Category.CONTENT_REFUSED, "no"))
        provider.release()
        await world.until_alerted(job_id)
        await eventually(shows(world, job_id, "dead"), "the death to be shown")
        yield job_id


async def test_a_job_that_dies_while_it_waits_is_shown_as_dead(world: World) -> None:
    async with dead_while_it_waits(world, ScriptedProvider()) as job_id:
        line = await details(world, job_id)

        assert await shown(world, job_id) == ("dead", None)
        assert line.startswith("dead at plan: content_refused")


async def test_a_notice_that_comes_after_the_death_is_not_shown(world: World) -> None:
    async with dead_while_it_waits(world, ScriptedProvider()) as job_id:
        await tell(world, job_id, in_time())
        await world.workflow(job_id).query("progress")  # it has taken the notice

        assert (await shown(world, job_id))[0] == "dead"


async def test_it_can_be_redriven_and_succeeds(world: World) -> None:
    provider = ScriptedProvider()

    async with dead_while_it_waits(world, provider) as job_id:
        provider.fail_at("plan", None)
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("succeeded", None)


async def test_it_can_be_discarded_and_is_shown_so(world: World) -> None:
    async with dead_while_it_waits(world, ScriptedProvider()) as job_id:
        await world.order("discard", job_id)
        await world.until(job_id, JobState.DISCARDED)
        await world.workflow(job_id).result()

    assert await shown(world, job_id) == ("discarded", None)


async def test_thirty_notices_leave_the_history_short(world: World) -> None:
    provider = ScriptedProvider()

    async with at_its("plan", world, provider) as job_id:
        for attempt in range(1, 31):
            notice = in_time(AN_HOUR + timedelta(minutes=attempt), attempt)
            await tell(world, job_id, notice)
            await eventually(told_of(world, job_id, notice), "each wait to be shown")
        provider.release()
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()

    assert 150 < await events(world, job_id) < 500
    assert await shown(world, job_id) == ("succeeded", None)


def told_of(world: World, job_id: str, notice: WaitNotice) -> Callable[[], Awaitable[bool]]:
    """Whether this wait is the one that is shown."""

    async def look() -> bool:
        return (await shown(world, job_id))[1] == notice.until

    return look
