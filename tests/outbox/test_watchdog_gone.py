"""Jobs whose workflow is gone, and words that got lost: found by looking at what does not move."""

import asyncio

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.states import JobState
from agentjobs.outbox.described import described
from tests.fakes import ScriptedProvider
from tests.outbox.watching import deaths_of, delete, looks_of
from tests.world import World, eventually


async def in_its_answer(world: World, provider: ScriptedProvider) -> str:
    """A job that has its ticket, and whose answer is being written."""
    provider.hold_at("answer")
    job_id = await world.submit()
    await provider.reached("answer")
    return job_id


async def test_a_deleted_job_is_dead_at_the_second_look_and_redriven_without_a_second_ticket(world: World) -> None:
    provider = ScriptedProvider()
    looks = looks_of(world)
    async with world.running(provider):
        job_id = await in_its_answer(world, provider)
        await delete(world, job_id)
        found = [await looks.unmoved.run_once(), await looks.unmoved.run_once(), await looks.unmoved.run_once()]
        provider.release()
        letter = await world.until_alerted(job_id)
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert found == [0, 1, 0]
    assert (letter.reason, letter.message) == ("terminated", "its workflow is gone: deleted, or lost by Temporal")
    assert job.generation == 1
    assert await world.ticket_count() == 1
    assert provider.calls.count("plan") == 1


async def test_a_deleted_job_is_found_once_by_two_watchdogs_at_once(world: World) -> None:
    provider = ScriptedProvider()
    one, other = looks_of(world), looks_of(world)
    async with world.running(provider):
        job_id = await in_its_answer(world, provider)
        await delete(world, job_id)
        for _ in range(3):
            await asyncio.gather(one.all_once(), other.all_once())
        provider.release()
        await world.until_alerted(job_id)

    assert await deaths_of(world, job_id) == ["terminated"]


async def test_jobs_that_only_take_long_are_left_alone(world: World) -> None:
    provider = ScriptedProvider()
    looks = looks_of(world)
    async with world.running(provider):
        job_id = await in_its_answer(world, provider)
        waiting = await world.submit()
        settled = [await looks.all_once() for _ in range(3)]
        provider.release()
        ended = [await world.until(job_id), await world.until(waiting)]

    assert settled == [0, 0, 0]
    assert [job.state for job in ended] == [JobState.SUCCEEDED] * 2


async def test_a_job_that_no_worker_has_taken_is_no_dead_job(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    looks = looks_of(world)

    assert [await looks.all_once() for _ in range(3)] == [0, 0, 0]
    assert (await world.job(job_id)).state is JobState.PENDING


async def test_a_missing_namespace_is_no_missing_workflow(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    elsewhere = await Client.connect(world.client.service_client.config.target_host, namespace="nowhere")

    with pytest.raises(RPCError):
        await described(elsewhere, f"agent-job-{job_id}")
    looks = looks_of(world, client=elsewhere)
    for _ in range(2):
        with pytest.raises(RPCError):
            await looks.unmoved.run_once()

    assert (await world.job(job_id)).state is JobState.PENDING


async def test_the_window_moves_over_all_jobs_and_begins_again(world: World) -> None:
    jobs = [await world.submit(deadline_seconds=1000 + number) for number in range(5)]
    await world.relay().start_once()
    looks = looks_of(world, window=2)
    for job_id in (jobs[0], jobs[4]):
        await delete(world, job_id)

    settled = [await looks.unmoved.run_once() for _ in range(6)]

    assert sum(settled) == 2
    assert [await deaths_of(world, job_id) for job_id in jobs] == [["terminated"], [], [], [], ["terminated"]]


async def test_a_workflow_that_ended_well_while_the_ledger_knows_nothing_of_it_is_a_death(world: World) -> None:
    job_id = await world.submit()
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)
        await world.workflow(job_id).result()
    # As after a restore of the ledger to a moment before the end.
    async with world.ledger.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(
            "UPDATE jobs SET state = 'running', previous_state = 'pending', finalized_at = NULL WHERE id = $1",
            job_id,
        )

    await looks_of(world).unmoved.run_once()

    assert await deaths_of(world, job_id) == ["terminated"]
    async with world.running():
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)
    assert await world.ticket_count() == 1


async def test_a_start_that_was_lost_is_queued_again_once(world: World) -> None:
    job_id = await world.submit()
    await world.ledger.database.pool.execute("DELETE FROM outbox WHERE job_id = $1", job_id)

    found = await asyncio.gather(*(looks_of(world).unmoved.run_once() for _ in range(4)))

    assert sum(found) == 1
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)


async def test_a_cancel_that_was_lost_is_queued_again(world: World) -> None:
    provider = ScriptedProvider()
    looks = looks_of(world)
    async with world.running(provider):
        job_id = await in_its_answer(world, provider)
        # The wish is on record, and nobody is told: the row and the word to the workers are lost.
        await world.ledger.database.pool.execute(
            "UPDATE jobs SET cancel_requested_at = now() WHERE id = $1", job_id
        )
        await eventually(looks.unmoved.run_once, "the cancel to be queued again")
        await world.until(job_id, JobState.CANCELLED)

    assert (await world.ticket_count(), await world.open_ticket_count()) == (1, 0)


async def test_a_word_that_was_lost_with_a_deleted_workflow_can_be_given_again(world: World) -> None:
    async with world.running():
        job_id = await world.submit(user="bob")
        await world.until_alerted(job_id)
    await world.order("redrive", job_id)
    await world.ledger.database.pool.execute("DELETE FROM outbox WHERE job_id = $1", job_id)
    assert await looks_of(world).words.run_once() == 0  # its workflow is there, and may be carrying it out
    await delete(world, job_id)

    assert await looks_of(world).words.run_once() == 1

    await world.grant("bob")
    async with world.running():
        await world.order("redrive", job_id)
        await world.until(job_id, JobState.SUCCEEDED)


async def test_a_dead_job_without_its_workflow_is_no_further_death(world: World) -> None:
    provider = ScriptedProvider(errors=(PermanentError(Category.CONTENT_REFUSED, "no"),))
    async with world.running(provider):
        job_id = await world.submit()
        await world.until_alerted(job_id)
    await delete(world, job_id)
    looks = looks_of(world)

    assert [await looks.all_once() for _ in range(3)] == [0, 0, 0]
    assert await deaths_of(world, job_id) == ["content_refused"]
