"""What a lost worker had in hand is due at once, and the status says so; what goes on already is left alone."""

import asyncio

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from tests.ledger.scene import CREATE_TICKET, Scene

_LOST = "INSERT INTO workers (id, number, identity, lost_at) VALUES ('w1', 1, 'w1', now())"


@pytest.fixture
async def lost(scene: Scene) -> Scene:
    """The scene, with a job that the worker w1 had in hand and nobody else has begun again."""
    await scene.begin((await scene.accept(id="in-hand")).id)
    await scene.execute(_LOST)
    return scene


async def take_over(scene: Scene) -> None:
    """The worker's work is handed on."""
    await scene.ledger.workers.mark_taken_over("w1")


async def test_a_lost_workers_job_is_due_at_once(lost: Scene) -> None:
    await take_over(lost)

    job = await lost.job("in-hand")
    assert (job.state, job.next_attempt_at) == (JobState.RETRY_WAIT, job.updated_at)
    assert job.failure is not None
    assert (job.failure.category, job.failure.reason, job.failure.step) == (
        Category.TIMEOUT,
        Category.TIMEOUT,
        CREATE_TICKET,
    )
    assert await lost.outcomes("in-hand") == [("crashed", None)]


async def test_its_stream_says_so(lost: Scene) -> None:
    await take_over(lost)

    attempt = (await lost.ledger.jobs.attempts("in-hand"))[0]
    event = (await lost.ledger.jobs.events("in-hand"))[-1]
    due = event.data.pop("next_attempt_at")
    assert (event.type, event.seq) == ("retry_scheduled", 3)
    assert event.data == {"step": CREATE_TICKET, "attempt": 1, "attempt_id": attempt.id, "category": "timeout"}
    assert due is not None


async def test_it_waits_with_the_others_for_the_same_trouble(lost: Scene) -> None:
    await take_over(lost)

    assert [job.id for job in await lost.ledger.waits.waiting("acme", user=None, limit=10)] == ["in-hand"]
    assert [one.category for one in await lost.ledger.waits.counts("acme", user=None)] == ["timeout"]
    assert await lost.ledger.waits.claim(10) == []  # over before anybody looks


async def test_the_next_attempt_moves_it_back_to_running(lost: Scene) -> None:
    await take_over(lost)

    begun = await lost.begin("in-hand", worker="w2", attempt=2)

    job = await lost.job("in-hand")
    assert (job.state, job.failure, job.next_attempt_at, job.attempt) == (JobState.RUNNING, None, None, 2)
    assert begun.tried.counted == 1
    assert (await lost.events("in-hand"))[-2:] == ["retry_scheduled", "attempt_started"]


async def test_a_job_that_another_worker_has_begun_again_is_left_alone(lost: Scene) -> None:
    await lost.begin("in-hand", worker="w2", attempt=2)

    await take_over(lost)

    assert (await lost.job("in-hand")).state is JobState.RUNNING
    assert await lost.outcomes("in-hand") == [("crashed", None), ("running", None)]
    assert "retry_scheduled" not in await lost.events("in-hand")


async def test_a_job_that_is_begun_again_at_the_same_moment_is_left_alone(lost: Scene) -> None:
    async with lost.held("in-hand"):
        beginning = asyncio.create_task(lost.begin("in-hand", worker="w2", attempt=2))
        await lost.until_under_way([beginning])
        taking = asyncio.create_task(take_over(lost))
        await lost.until_under_way([beginning, taking])
    await asyncio.gather(beginning, taking)

    assert (await lost.job("in-hand")).state is JobState.RUNNING
    assert await lost.outcomes("in-hand") == [("crashed", None), ("running", None)]


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.SUCCEEDED])
async def test_a_job_that_is_over_stays_so(lost: Scene, state: JobState) -> None:
    await lost.ledger.outcomes.finish("in-hand", state)

    await take_over(lost)

    assert (await lost.job("in-hand")).state is state
    assert await lost.outcomes("in-hand") == [("abandoned", None)]


async def test_a_dead_job_whose_undo_was_in_hand_stays_dead(lost: Scene) -> None:
    await lost.bury("in-hand")
    await lost.begin("in-hand", f"undo.{CREATE_TICKET}", kind="undo", worker="w3")
    await lost.execute("UPDATE attempts SET worker = 'w1'")

    await take_over(lost)

    job = await lost.job("in-hand")
    assert job.state is JobState.DEAD
    assert job.failure is not None
    assert job.failure.reason is Category.ACCESS_DENIED
    assert await lost.outcomes("in-hand") == [("crashed", None), ("crashed", None)]


async def test_other_workers_jobs_are_left_alone(lost: Scene) -> None:
    other = await lost.accept()
    await lost.begin(other.id, worker="w2")

    await take_over(lost)

    assert (await lost.job(other.id)).state is JobState.RUNNING
    assert await lost.outcomes(other.id) == [("running", None)]


async def test_a_second_takeover_changes_nothing(lost: Scene) -> None:
    await take_over(lost)
    before = await lost.job("in-hand")

    await take_over(lost)

    assert await lost.job("in-hand") == before
    assert (await lost.events("in-hand")).count("retry_scheduled") == 1
    assert await lost.ledger.workers.to_take_over() == []


async def test_all_jobs_in_hand_are_handed_on_at_once(lost: Scene) -> None:
    jobs = [(await lost.accept()).id for _ in range(20)]
    for job_id in jobs:
        await lost.begin(job_id, worker="w0")
    await lost.execute("UPDATE attempts SET worker = 'w1'")

    await take_over(lost)

    assert {(await lost.job(job_id)).state for job_id in [*jobs, "in-hand"]} == {JobState.RETRY_WAIT}
