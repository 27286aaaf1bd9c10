"""Record the histories that test_replay.py replays: `make record-histories`.

Run it when a workflow is changed on purpose, under a new name (keep the old files: jobs of that age may still
be open), or when a new shape of history becomes possible.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentjobs.domain import bulk, keys
from agentjobs.domain.approvals import Decision
from agentjobs.domain.bulk import RedriveState
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.approvals import Word
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.trackers.postgres import PostgresTracker
from tests.fakes import ScriptedProvider
from tests.ports import free_port
from tests.servers import real_temporal
from tests.workflows.bulk_scene import BulkScene
from tests.world import World

HISTORIES = Path(__file__).parent / "histories"


async def success(world: World) -> dict[str, str]:
    """From a request to its ticket."""
    job_id = await world.submit()
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)
    return {"success": keys.workflow_id(job_id)}


async def retry(world: World) -> dict[str, str]:
    """Two failures, then success."""
    busy = RetryableError(Category.UNAVAILABLE, "busy", retry_after_seconds=0.05)
    job_id = await world.submit()
    async with world.running(ScriptedProvider(errors=(busy, busy))):
        await world.until(job_id, JobState.SUCCEEDED)
    return {"retry": keys.workflow_id(job_id)}


async def fast_lane(world: World) -> dict[str, str]:
    """Short steps; one of them fails once, and goes on as an activity."""
    provider = ScriptedProvider(short=True)
    provider.fail_at("answer", RetryableError(Category.UNAVAILABLE, "busy", retry_after_seconds=1))
    job_id = await world.submit()
    async with world.running(provider):
        await world.until(job_id, JobState.RETRY_WAIT)
        provider.fail_at("answer", None)
        await world.until(job_id, JobState.SUCCEEDED)
    return {"fast_lane": keys.workflow_id(job_id)}


async def dead_and_redriven(world: World) -> dict[str, str]:
    """A missing grant, a dead letter, a redrive: two runs of one workflow, and the tenant's desk."""
    job_id = await world.submit(user="bob")
    async with world.running():
        await world.until_alerted(job_id)
        await world.grant("bob")
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)
    return {"dead_and_redriven": keys.workflow_id(job_id), "desk": keys.desk_id(world.tenant)}


async def dead_and_waiting(world: World) -> dict[str, str]:
    """A dead job that nobody has looked at yet."""
    job_id = await world.submit(user="bob")
    async with world.running():
        await world.until_alerted(job_id)
    return {"dead_and_waiting": keys.workflow_id(job_id)}


async def discarded(world: World) -> dict[str, str]:
    """A ticket, a death, a discard that closes the ticket."""
    provider = ScriptedProvider()
    provider.fail_at("answer", RuntimeError("unforeseen"))
    job_id = await world.submit()
    async with world.running(provider):
        await world.until(job_id, JobState.DEAD)
        await world.order("discard", job_id)
        await world.until(job_id, JobState.DISCARDED)
    return {"discarded": keys.workflow_id(job_id)}


async def cancelled(world: World) -> dict[str, str]:
    """Cancelled while the answer is being written."""
    provider = ScriptedProvider()
    job_id = await world.submit()
    async with world.running(provider):
        provider.hold_at("answer")
        await provider.reached("answer")
        await world.cancel(job_id)
        await world.until(job_id, JobState.CANCELLED)
    return {"cancelled": keys.workflow_id(job_id)}


async def approved(world: World) -> dict[str, str]:
    """A call that a person refused, a redrive, and the same call approved: two runs of one workflow."""
    tools = built_in_tools(PostgresTracker(world.ledger.tickets), {"create_ticket": 600})
    job_id = await world.submit()
    async with world.running(tools=tools):
        await _decided(world, job_id, Decision.REJECT)
        await world.until(job_id, JobState.DEAD)
        await world.order("redrive", job_id)
        await _decided(world, job_id, Decision.APPROVE)
        await world.until(job_id, JobState.SUCCEEDED)
    return {"approved": keys.workflow_id(job_id)}


async def _decided(world: World, job_id: str, decision: Decision) -> None:
    await world.until(job_id, JobState.WAITING_APPROVAL)
    step = keys.tool_step(1, "create_ticket")
    word = Word(decision=decision, actor="rita", note="in a test")
    assert await world.ledger.approvals.decide(world.tenant, job_id, step, word)


async def unanswered(world: World) -> dict[str, str]:
    """A call that nobody approved in time."""
    tools = built_in_tools(PostgresTracker(world.ledger.tickets), {"create_ticket": 1})
    job_id = await world.submit()
    async with world.running(tools=tools):
        await world.until(job_id, JobState.DEAD)
    return {"unanswered": keys.workflow_id(job_id)}


async def bulk_redrive(world: World) -> dict[str, str]:
    """Two dead letters redriven together, one after its canary."""
    scene = BulkScene(world)
    async with scene.running():
        await scene.dead_jobs(2)
        scene.destination.broken = False
        redrive_id = await scene.start(canary=1)
        await scene.until(redrive_id, RedriveState.COMPLETED)
    return {"bulk_redrive": bulk.workflow_id(redrive_id)}


SHAPES: tuple[Callable[[World], Awaitable[dict[str, str]]], ...] = (
    success,
    retry,
    fast_lane,
    dead_and_redriven,
    dead_and_waiting,
    discarded,
    cancelled,
    approved,
    unanswered,
    bulk_redrive,
)


async def _save(world: World, name: str, workflow_id: str) -> None:
    # A redrive goes on as a new run: every run is a history of its own.
    query = f'WorkflowId = "{workflow_id}"'
    runs = [run async for run in world.client.list_workflows(query)]
    for number, run in enumerate(sorted(runs, key=lambda run: run.start_time), start=1):
        handle = world.client.get_workflow_handle(workflow_id, run_id=run.run_id)
        history = (await handle.fetch_history()).to_json_dict()
        suffix = f"-run-{number}" if len(runs) > 1 else ""
        text = json.dumps(_without_traces(history), indent=1)
        (HISTORIES / f"{name}{suffix}.json").write_text(text + "\n", encoding="utf-8")


def _without_traces(value: Any) -> Any:
    # A trace names files of the machine that recorded it; replay does not read it.
    if isinstance(value, dict):
        return {key: _without_traces(part) for key, part in value.items() if key != "stackTrace"}
    return [_without_traces(part) for part in value] if isinstance(value, list) else value


async def record(prefix: str) -> None:
    """Play every shape, and save what Temporal recorded."""
    with tempfile.TemporaryDirectory() as home:
        server = EmbeddedPostgres(Path(home), free_port(), durable=False)
        await server.start()
        try:
            await migrate(server.dsn())
            ledger = await Ledger.open(server.dsn(), size=10, application_name="record")
            async with real_temporal() as environment:
                for shape in SHAPES:
                    world = await World.made(ledger, environment.client)
                    for name, workflow_id in (await shape(world)).items():
                        await asyncio.sleep(1)  # visibility, by which runs are listed, lags behind
                        await _save(world, f"{prefix}-{name}", workflow_id)
            await ledger.close()
        finally:
            await server.stop()
            server.remove()


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
