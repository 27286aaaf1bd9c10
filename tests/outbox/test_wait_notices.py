"""Workflows are told of their waits, so that whoever looks at Temporal finds what waits and until when."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client

from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.wait_notices import BATCH, WaitNotices
from agentjobs.temporal import JOB_STATE, RETRY_WAIT_UNTIL
from tests.fakes import ScriptedProvider
from tests.ledger.scene import Scene
from tests.world import World, eventually


@pytest.fixture
async def world(ledger: Ledger, temporal: Client) -> World:
    """A tenant on the real server, over this folder's ledger."""
    return await World.made(ledger, temporal)


def busy(seconds: float) -> ScriptedProvider:
    """A provider that asks to be left alone for so long, once."""
    error = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=seconds, nothing_happened=True)
    return ScriptedProvider(errors=(error,))


async def listed(world: World, state: str) -> list[str]:
    """The workflows that Temporal's list has in this state."""
    query = f'JobState = "{state}" AND Tenant = "{world.tenant}"'
    return [execution.id async for execution in world.client.list_workflows(query)]


async def test_a_waiting_job_is_found_in_temporals_list(world: World) -> None:
    job_id = await world.submit()

    async with world.running(busy(600)):
        until = (await world.until(job_id, JobState.RETRY_WAIT)).next_attempt_at
        told = await WaitNotices(world.ledger, world.client).run_once()

        async def found() -> list[str]:
            return await listed(world, "retry_wait")

        ids = await eventually(found, "the job to be listed as waiting")
        shown = (await world.workflow(job_id).describe()).typed_search_attributes
        await world.workflow(job_id).terminate()

    assert (told, ids) == (1, [f"agent-job-{job_id}"])
    assert shown.get(JOB_STATE) == "retry_wait"
    end = shown.get(RETRY_WAIT_UNTIL)
    assert end is not None
    assert until is not None
    assert abs(end - until) < timedelta(milliseconds=1)


async def test_it_is_told_once(world: World) -> None:
    job_id = await world.submit()

    async with world.running(busy(600)):
        await world.until(job_id, JobState.RETRY_WAIT)
        notices = WaitNotices(world.ledger, world.client), WaitNotices(world.ledger, world.client)
        told = await asyncio.gather(*(each.run_once() for each in notices * 3))
        await world.workflow(job_id).terminate()

    assert sum(told) == 1


async def test_a_job_that_goes_on_is_listed_as_running_and_then_as_done(world: World) -> None:
    job_id = await world.submit()

    async with world.running(busy(6)):
        await world.until(job_id, JobState.RETRY_WAIT)
        told = await WaitNotices(world.ledger, world.client).run_once()
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()

        async def found() -> list[str]:
            return await listed(world, "succeeded")

        await eventually(found, "the job to be listed as done")

    assert told == 1
    assert await listed(world, "retry_wait") == []


async def test_a_wait_whose_workflow_is_gone_holds_up_no_other(world: World) -> None:
    gone, job_id = await world.submit(), await world.submit()
    provider = ScriptedProvider(errors=tuple(_away() for _ in range(2)))

    async with world.running(provider):
        for one in (gone, job_id):
            await world.until(one, JobState.RETRY_WAIT)
        await world.workflow(gone).terminate()
        told = await WaitNotices(world.ledger, world.client).run_once()
        await world.workflow(job_id).terminate()

    assert told == 1


async def test_a_batch_is_bounded_and_the_rest_comes_next(scene: Scene, temporal: Client) -> None:
    for _ in range(BATCH + 5):
        job = await scene.accept()
        await scene.fail(await scene.begin_attempt(job.id), release=True, wait_seconds=600)
    notices = WaitNotices(scene.ledger, temporal)

    told = await notices.run_once()  # there are no such workflows: nobody hears, and nothing is raised
    claimed = await scene.rows("SELECT count(*) AS jobs FROM jobs WHERE wait_shown_until IS NOT NULL")
    await notices.run_once()

    assert (told, claimed) == (0, [{"jobs": BATCH}])
    assert await scene.ledger.waits.claim(100) == []


async def test_where_nothing_waits_nobody_is_told(world: World) -> None:
    await world.submit()

    assert await WaitNotices(world.ledger, world.client).run_once() == 0


def _away() -> RetryableError:
    return RetryableError(Category.UNAVAILABLE, "away", retry_after_seconds=600, nothing_happened=True)
