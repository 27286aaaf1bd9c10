"""Histories replay whether they were recorded with tracing or without, and whether it is on now or off."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.states import JobState
from agentjobs.temporal import DATA_CONVERTER, tracing_interceptors, workflow_runner
from agentjobs.tracing.temporal import HEADER, Tracing
from tests.fakes import ScriptedProvider
from tests.replay.test_replay import HISTORIES, history_of, replayer
from tests.tracing.told import Told
from tests.world import World
from workflows.agent_job import AgentJob
from workflows.bulk_redrive import BulkRedrive
from workflows.dead_letter_desk import DeadLetterDesk


def tracing_replayer() -> Replayer:
    """As a worker that tells of spans."""
    return Replayer(
        workflows=[AgentJob, BulkRedrive, DeadLetterDesk],
        workflow_runner=workflow_runner(guarded=True),
        data_converter=DATA_CONVERTER,
        interceptors=[Tracing()],
    )


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_history_from_before_tracing_replays_with_it(path: Path, told: Told) -> None:
    await tracing_replayer().replay_workflow(history_of(path))

    assert told.spans == []


async def test_a_traced_history_replays_with_tracing_and_without_and_makes_no_span(
    traced_world: World, told: Told
) -> None:
    provider = ScriptedProvider()
    provider.fail_at("answer", PermanentError(Category.ACCESS_DENIED, "refused"))
    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await traced_world.until_alerted(job_id)
        died = await traced_world.workflow(job_id).fetch_history()
        provider.fail_at("answer", None)
        await traced_world.order("redrive", job_id)
        await traced_world.until(job_id, JobState.SUCCEEDED)
        await traced_world.workflow(job_id).result()
        redriven = await traced_world.workflow(job_id).fetch_history()
    before = len(told.spans)

    for history in (died, redriven):
        await tracing_replayer().replay_workflow(history)
        await replayer().replay_workflow(history)

    assert len(tracing_interceptors()) == 1
    assert [HEADER in headers_of_start(history) for history in (died, redriven)] == [True, True]
    assert len(told.spans) == before


def headers_of_start(history: WorkflowHistory) -> list[str]:
    """What came with the word to start."""
    started = history.events[0].workflow_execution_started_event_attributes
    return list(started.header.fields)
