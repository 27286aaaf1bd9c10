"""Workflows that run on although their job is over: ended. Those of dead jobs, and of living ones, stay."""

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus

from agentjobs.domain.states import JobState
from agentjobs.outbox import leftover_workflows
from tests.fakes import ScriptedProvider
from tests.outbox.watching import looks_of
from tests.world import World, eventually


async def test_a_workflow_whose_job_was_cancelled_meanwhile_is_ended(world: World) -> None:
    # No worker: it cannot notice by itself.
    job_id = await world.submit()
    await world.relay().start_once()
    assert await world.cancel(job_id) is JobState.CANCELLED
    one, other = looks_of(world), looks_of(world)

    async def looked() -> int:
        return sum(await asyncio.gather(one.leftovers.run_once(), other.leftovers.run_once()))

    await eventually(looked, "the workflow to be ended")

    assert (await world.workflow(job_id).describe()).status is WorkflowExecutionStatus.TERMINATED
    assert (await world.job(job_id)).state is JobState.CANCELLED


async def test_workflows_of_live_and_of_dead_jobs_are_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover_workflows, "PAGE", 1)
    provider = ScriptedProvider()
    provider.hold_at("answer")
    async with world.running(provider):
        dead = await world.submit(user="bob")
        await world.until_alerted(dead)
        live = await world.submit()
        await provider.reached("answer")
        looks = looks_of(world)
        ended = [await looks.leftovers.run_once() for _ in range(6)]
        provider.release()
        await world.until(live, JobState.SUCCEEDED)

    assert ended == [0] * 6
    assert (await world.workflow(dead).describe()).status is WorkflowExecutionStatus.RUNNING
