"""Slots of jobs whose workflows end in other ways than by themselves, on a real Temporal server."""

import pytest

from agentjobs.domain import keys
from agentjobs.domain.quotas import Limits, QuotaExceeded
from agentjobs.domain.states import JobState
from agentjobs.outbox.reconciler import Reconciler
from tests.ledger.scene import submission
from tests.world import World, eventually

ONE = Limits(in_flight=1)


async def test_a_terminated_job_gives_its_slot_back_when_it_is_found(world: World) -> None:
    job_id = await _accept(world)
    await world.relay().start_once()
    await world.workflow(job_id).terminate()
    with pytest.raises(QuotaExceeded):
        await _accept(world)

    await eventually(Reconciler(world.ledger, world.client, world.tenant).run_once, "the termination to be found")

    assert (await world.job(job_id)).state is JobState.DEAD
    assert await _accept(world)


async def test_a_job_that_succeeded_and_one_that_was_discarded_have_given_theirs_back(world: World) -> None:
    async with world.running():
        await world.until(await _accept(world), JobState.SUCCEEDED)
        without_grant = await _accept(world, user="nobody")
        await world.until_alerted(without_grant)
        await world.order("discard", without_grant)
        await world.until(without_grant, JobState.DISCARDED)

    assert await _accept(world)
    assert await _accept(world, user="nobody")


async def test_a_job_that_is_cancelled_while_it_waits_gives_its_slot_back(world: World) -> None:
    async with world.running():
        job_id = await _accept(world)
        await world.cancel(job_id)
        state = (await world.until(job_id)).state

    assert state in {JobState.CANCELLED, JobState.SUCCEEDED}
    assert await _accept(world)


async def test_jobs_and_the_desk_carry_their_tenant_as_fairness_key(world: World) -> None:
    async with world.running():
        job_id = await _accept(world, user="nobody", priority=2)
        await world.until_alerted(job_id)

    job = await world.workflow(job_id).describe()
    desk = await world.client.get_workflow_handle(keys.desk_id(world.tenant)).describe()
    told = [one.raw_description.workflow_execution_info.priority for one in (job, desk)]
    assert [one.fairness_key for one in told] == [world.tenant, world.tenant]
    assert told[0].priority_key == 2


async def _accept(world: World, *, user: str = "ann", priority: int = 3) -> str:
    version = world.agents.current("support-triage").policy_version
    wanted = submission(world.tenant, user=user, priority=priority, policy_version=version)
    return (await world.ledger.jobs.accept(wanted, installation=ONE)).id
