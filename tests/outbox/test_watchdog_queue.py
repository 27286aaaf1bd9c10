"""Nobody works: it is told, and no job stands as running beyond its deadline for ever."""

import asyncio

import structlog

from agentjobs.domain.states import JobState
from agentjobs.ledger.comparing import FindingKind
from agentjobs.ledger.queues import QueueKind
from tests.fakes import ScriptedProvider
from tests.outbox.watching import deaths_of, looks_of
from tests.world import World, eventually


async def let_its_deadline_pass(world: World, job_id: str, days: int = 1) -> None:
    """As if all of it had happened so many days earlier."""
    await world.ledger.database.pool.execute(
        "UPDATE jobs SET deadline_at = moment, updated_at = moment"
        "  FROM (SELECT now() - make_interval(days => $2) AS moment) AS earlier WHERE id = $1",
        job_id,
        days,
    )


async def test_without_a_worker_it_is_told_once_over_all_relays_and_kept_until_it_is_over(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    one, other = looks_of(world), looks_of(world)

    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await asyncio.gather(one.queue.run_once(), other.queue.run_once())
    findings = await world.ledger.comparing.findings()
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)
        looked = await one.queue.run_once()

    assert [entry["log_level"] for entry in logs if entry["event"] == "no_worker"] == ["error"]
    assert [(finding.kind, finding.subject) for finding in findings] == [(FindingKind.NO_WORKER, world.tenant)]
    assert looked == 0
    assert await world.ledger.comparing.findings() == []


async def test_a_worker_that_is_known_to_be_lost_counts_no_more_at_once(world: World) -> None:
    async with world.running():
        await world.until(await world.submit(), JobState.SUCCEEDED)
    await world.submit()
    await world.relay().start_once()
    looks = looks_of(world)
    assert await looks.queue.run_once() == 0  # by its last poll it may still be there

    # Its identity is in the ledger, and its session is gone.
    await world.ledger.database.pool.execute(
        "INSERT INTO workers (id, number, identity, lost_at) VALUES ($1 || '#1', 1, $1, now())", world.tenant
    )

    assert await looks.queue.run_once() == 1


async def test_a_queue_without_work_needs_no_worker(world: World) -> None:
    await world.submit()  # not told to Temporal yet

    assert await looks_of(world).queue.run_once() == 0
    assert await world.ledger.comparing.findings() == []


async def test_a_job_beyond_its_deadline_without_a_worker_is_dead_and_can_be_redriven(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    await let_its_deadline_pass(world, job_id)

    found = await asyncio.gather(*(looks_of(world).overdue.run_once() for _ in range(3)))

    assert sum(found) >= 1
    assert await deaths_of(world, job_id) == ["deadline_exceeded"]
    async with world.running():
        await world.until_alerted(job_id)
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)
    assert (job.generation, await world.ticket_count()) == (1, 1)
    assert await deaths_of(world, job_id) == ["deadline_exceeded"]


async def test_a_job_that_waits_for_its_start_beyond_its_deadline_is_dead_and_never_starts(world: World) -> None:
    job_id = await world.submit()
    await let_its_deadline_pass(world, job_id)

    assert await looks_of(world).overdue.run_once() == 1

    await world.relay().start_once()
    assert await looks_of(world).all_once() == 0
    assert (await world.job(job_id)).state is JobState.DEAD


async def test_a_job_that_is_being_undone_may_outlive_its_deadline_but_not_for_ever(world: World) -> None:
    provider = ScriptedProvider()
    provider.hold_at("answer")
    async with world.running(provider):
        job_id = await world.submit()
        await provider.reached("answer")
        await world.ledger.database.pool.execute(
            "UPDATE jobs SET cancel_requested_at = now() WHERE id = $1", job_id
        )
        await let_its_deadline_pass(world, job_id)
        soon = await looks_of(world).overdue.run_once()
        await let_its_deadline_pass(world, job_id, days=9)
        late = await looks_of(world).overdue.run_once()
        provider.release()
        await world.until_alerted(job_id)

    assert (soon, late) == (0, 1)


async def test_a_job_whose_answer_is_written_may_end_after_its_deadline(world: World) -> None:
    world.failpoints = "outcome.before_record=raise"
    job_id = await world.submit()
    async with world.running():

        async def answered() -> bool:
            return any(
                effect.step == "answer" and effect.result for effect in await world.ledger.jobs.effects(job_id)
            )

        await eventually(answered, "the answer")
    await let_its_deadline_pass(world, job_id)

    assert await looks_of(world).overdue.run_once() == 0

    world.failpoints = ""
    async with world.running():
        await world.until(job_id, JobState.SUCCEEDED)


async def test_what_is_seen_of_the_queue_is_kept_for_the_api(world: World) -> None:
    await world.submit()
    await world.relay().start_once()
    looks = looks_of(world)

    async def backlog_is_seen() -> bool:
        await looks.queue.run_once()
        return [seen.backlog for seen in await world.ledger.queues.task_queues()] == [0, 1]

    await eventually(backlog_is_seen, "the backlog")
    before = await world.ledger.queues.task_queues()
    async with world.running():

        async def worker_is_seen() -> bool:
            await looks.queue.run_once()
            return [seen.pollers for seen in await world.ledger.queues.task_queues()] == [1, 1]

        await eventually(worker_is_seen, "the worker")
    after = await world.ledger.queues.task_queues()

    assert [(seen.name, seen.kind) for seen in before] == [
        (world.tenant, QueueKind.ACTIVITY),
        (world.tenant, QueueKind.WORKFLOW),
    ]
    assert [seen.pollers for seen in before] == [0, 0]
    assert all(later.seen_at > earlier.seen_at for earlier, later in zip(before, after, strict=True))
