"""What Temporal has of a job goes with its content, and never makes a second run or a death of it."""

import contextlib

from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from agentjobs.domain import keys
from agentjobs.domain.retention import RetentionPolicy
from agentjobs.domain.states import JobState
from agentjobs.ledger.erasure import ErasureRecord
from agentjobs.outbox.erasures import ErasureSweep
from agentjobs.outbox.reconciler import Reconciler
from agentjobs.outbox.retention import RetentionSweep
from agentjobs.outbox.workflow_deletion import WorkflowDeletion
from tests.ledger.scene import Scene
from tests.outbox.watching import looks_of
from tests.retention.planting import CANARY, ended_days_ago, places_of
from tests.world import World, eventually

POLICY = RetentionPolicy(content_days=30, jobs_days=90)


def scene_of(world: World) -> Scene:
    return Scene(world.ledger, world.tenant)


async def knows_of(world: World, job_id: str) -> list[str]:
    """The runs under the job's workflow id that Temporal knows, by visibility and by the id itself."""
    workflow_id = keys.workflow_id(job_id)
    runs = {run.run_id async for run in world.client.list_workflows(f'WorkflowId = "{workflow_id}"')}
    with contextlib.suppress(RPCError):
        runs.add((await world.workflow(job_id).describe()).run_id)
    return sorted(run for run in runs if run)


async def until_gone(world: World, *job_ids: str) -> None:
    deletion = WorkflowDeletion(world.ledger, world.client)

    async def look() -> bool:
        await world.ledger.database.pool.execute(
            "UPDATE jobs SET workflow_look_at = now() WHERE workflow_look_at IS NOT NULL"
        )
        await deletion.run_once()
        left = "SELECT count(*) FROM jobs WHERE id = ANY ($1) AND workflow_look_at IS NOT NULL"
        return bool(await world.ledger.database.pool.fetchval(left, list(job_ids)) == 0)

    await eventually(look, "nothing to be left of the workflows")


async def redriven_and_succeeded(world: World, text: str = CANARY) -> str:
    """A job that died for want of a grant, was redriven (a second run) and succeeded. Then no worker runs."""
    async with world.running():
        job_id = await world.submit(text, user="bob", key="k1")
        await world.until_alerted(job_id)
        await world.grant("bob")
        await world.order("redrive", job_id)
        await until_closed(world, job_id, JobState.SUCCEEDED)
    return job_id


async def until_closed(world: World, job_id: str, state: JobState) -> None:
    """Until the job is in this state, and its workflow has nothing to do any more."""
    await world.until(job_id, state)

    async def look() -> bool:
        return (await world.workflow(job_id).describe()).status is WorkflowExecutionStatus.COMPLETED

    await eventually(look, "the workflow to close")


async def erased(world: World, erasure: ErasureRecord) -> bool:
    await ErasureSweep(world.ledger).run_once()
    now = await world.ledger.erasures.read(world.tenant, erasure.id)
    return now is not None and now.completed_at is not None


async def test_every_run_goes_with_the_content_and_then_the_row(world: World) -> None:
    job_id = await redriven_and_succeeded(world)
    runs = await knows_of(world, job_id)
    await ended_days_ago(scene_of(world), [job_id], 91)

    await RetentionSweep(world.ledger, POLICY).run_once()
    await until_gone(world, job_id)
    left = await knows_of(world, job_id)
    await RetentionSweep(world.ledger, POLICY).run_once()

    assert len(runs) == 2
    assert left == []
    assert await world.ledger.jobs.read(world.tenant, job_id) is None


async def test_without_its_workflow_an_ended_job_neither_runs_again_nor_dies(world: World) -> None:
    async with world.running():
        job_id = await world.submit()
        await until_closed(world, job_id, JobState.SUCCEEDED)
    await ended_days_ago(scene_of(world), [job_id], 31)
    await RetentionSweep(world.ledger, POLICY).run_once()
    await until_gone(world, job_id)
    await scene_of(world).execute(
        "INSERT INTO outbox (topic, job_id, tenant) VALUES ('start_job', $1, $2)", job_id, world.tenant
    )
    looks, reconciler = looks_of(world), Reconciler(world.ledger, world.client, world.tenant)

    delivered = await world.relay().start_once()
    settled = [await looks.all_once() for _ in range(3)] + [await reconciler.run_once()]

    assert delivered == 1
    assert settled == [0, 0, 0, 0]
    assert await knows_of(world, job_id) == []
    job = await world.job(job_id)
    assert (job.state, job.generation) == (JobState.SUCCEEDED, 0)


async def test_a_workflow_that_has_not_closed_yet_is_left_alone(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    assert await world.cancel(job_id) is JobState.CANCELLED  # no worker: the workflow stays open
    await world.ledger.erasures.of_job(world.tenant, job_id, actor="adam")
    deletion = WorkflowDeletion(world.ledger, world.client)

    gone = await deletion.run_once()
    at_once = await deletion.run_once()

    assert (gone, at_once) == (0, 0)
    assert (await world.workflow(job_id).describe()).status is WorkflowExecutionStatus.RUNNING
    assert await scene_of(world).rows("SELECT workflow_look_at > now() AS later FROM jobs") == [{"later": True}]


async def test_a_user_is_erased_from_the_ledger_and_from_temporal(world: World) -> None:
    ended = await redriven_and_succeeded(world)
    async with world.running():
        dead = await world.submit(f"{CANARY} and dead", user="eve")
        await world.until_alerted(dead)
        await scene_of(world).execute("UPDATE jobs SET \"user\" = 'bob' WHERE id = $1", dead)
        erasure = await world.ledger.erasures.of_user(world.tenant, "bob", actor="adam")

        async def all_erased() -> bool:
            await erased(world, erasure)
            progress = await world.ledger.erasures.progress(erasure.id)
            return progress.erased == progress.jobs == 2

        await eventually(all_erased, "both jobs to be erased")
        await until_closed(world, dead, JobState.DISCARDED)
    before = await erased(world, erasure)
    await until_gone(world, ended, dead)

    assert not before
    assert await erased(world, erasure)
    assert [await knows_of(world, job_id) for job_id in (ended, dead)] == [[], []]
    assert await places_of(scene_of(world), CANARY) == set()
    assert (await world.job(dead)).state is JobState.DISCARDED
