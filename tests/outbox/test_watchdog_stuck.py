"""Workflows whose code fails for ever: found within a minute, dead, and redriven by code that is right again."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import structlog

from agentjobs.domain import keys
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.outbox.described import described, why_stuck
from tests.fakes import ScriptedProvider
from tests.outbox import changed_job
from tests.outbox.watching import Looks, deaths_of, looks_of
from tests.world import World, eventually

WITHIN_SECONDS = 60


@asynccontextmanager
async def changed(world: World, monkeypatch: pytest.MonkeyPatch, workflow: type) -> AsyncIterator[None]:
    """Workers of another release, and the relay."""
    with monkeypatch.context() as patched:
        patched.setattr("worker.AgentJob", workflow)
        async with world.running():
            yield


async def with_its_ticket(world: World) -> str:
    """A job that has its ticket and waits for the next attempt of its answer, without a worker."""
    provider = ScriptedProvider()
    provider.fail_at("answer", RetryableError(Category.UNAVAILABLE, "away", retry_after_seconds=3))
    async with world.running(provider):
        job_id = await world.submit()
        await world.until(job_id, JobState.RETRY_WAIT)
    return job_id


def each_second(look: Callable[[], Awaitable[int]]) -> Callable[[], Awaitable[int]]:
    """The look, with a pause: visibility is not to be flooded."""

    async def looked() -> int:
        await asyncio.sleep(0.5)
        return await look()

    return looked


async def found_stuck(world: World, looks: Looks, job_id: str) -> float:
    """How many seconds it took until the job was dead."""
    began = time.monotonic()
    await eventually(each_second(looks.all_once), f"job {job_id} to be found stuck")
    return time.monotonic() - began


@pytest.mark.parametrize("workflow", [changed_job.Raises, changed_job.ReadsAnotherInput])
async def test_an_exception_in_workflow_code_is_found_and_its_text_told_to_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch, workflow: type
) -> None:
    looks = looks_of(world)
    with structlog.testing.capture_logs() as logs:
        async with changed(world, monkeypatch, workflow):
            job_id = await world.submit()
            took = await found_stuck(world, looks, job_id)

    job = await world.job(job_id)
    assert took < WITHIN_SECONDS
    assert job.failure is not None
    assert job.failure.reason == "workflow_stuck"
    assert job.failure.message.startswith("its workflow cannot go on: an exception in the workflow's code")
    assert "hush" not in job.failure.message + str(logs)
    async with world.running():
        await world.until_alerted(job_id)
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)
    assert await deaths_of(world, job_id) == ["workflow_stuck"]


async def test_nondeterminism_is_found_by_two_watchdogs_once_and_redriven_with_effects_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await with_its_ticket(world)
    one, other = looks_of(world), looks_of(world)

    async def both() -> int:
        return sum(await asyncio.gather(one.all_once(), other.all_once()))

    async with changed(world, monkeypatch, changed_job.SleepsFirst):
        began = time.monotonic()
        await eventually(each_second(both), "the nondeterminism to be found")
        assert time.monotonic() - began < WITHIN_SECONDS
        description = await world.workflow(job_id).describe()

    assert "nondeterminism" in str((await world.job(job_id)).failure)
    assert description.close_time is not None
    async with world.running():
        await world.until_alerted(job_id)
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)
    assert await deaths_of(world, job_id) == ["workflow_stuck"]
    assert (job.generation, await world.ticket_count()) == (1, 1)


async def test_a_redrive_that_meets_a_stuck_workflow_is_carried_out_by_a_new_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.running():
        job_id = await world.submit(user="bob")
        await world.until_alerted(job_id)
    await world.grant("bob")
    looks = looks_of(world)

    # Its workflow is open and dead; the word wakes it, and its history does not fit the code.
    with structlog.testing.capture_logs() as logs:
        async with changed(world, monkeypatch, changed_job.SleepsFirst):
            await world.order("redrive", job_id)
            await eventually(each_second(looks.stuck.run_once), "the stuck workflow to be ended")
    async with world.running():
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert (job.generation, await world.ticket_count()) == (1, 1)
    assert await deaths_of(world, job_id) == ["access_denied"]
    assert "delivery_failed" not in {entry["event"] for entry in logs}  # it is put off, and no fault


async def test_a_release_that_is_taken_back_soon_kills_no_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = looks_of(world)
    async with changed(world, monkeypatch, changed_job.Raises):
        job_id = await world.submit()

        async def failed_once() -> bool:
            workflow = await described(world.client, keys.workflow_id(job_id))
            return workflow is not None and workflow.attempt > 1

        await eventually(failed_once, "the first failure")
        workflow = await described(world.client, keys.workflow_id(job_id))
        assert workflow is not None
        assert await why_stuck(world.client, workflow) is None
        assert await looks.all_once() == 0
    async with world.running():
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert job.generation == 0
