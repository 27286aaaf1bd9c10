"""A bulk redrive, on a real Temporal server and a real ledger: careful, stoppable, and exact."""

import pytest

from agentjobs.domain.bulk import RedriveState, StopReason
from agentjobs.domain.states import JobState
from agentjobs.ledger.redrive_records import LetterFilter, Word
from tests.workflows.bulk_scene import BulkScene
from tests.world import World


@pytest.fixture
async def scene(world: World) -> BulkScene:
    """One tenant, and a destination that is broken."""
    return BulkScene(world)


@pytest.mark.parametrize("many", [40, pytest.param(200, marks=pytest.mark.chaos)])
async def test_the_canary_stops_it_and_when_the_cause_is_mended_all_recover(scene: BulkScene, many: int) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(many)
        calls_before = len(scene.destination.calls)

        first = await scene.start(canary=3)
        stopped = await scene.until(first)
        calls_of_the_canary = len(scene.destination.calls) - calls_before
        states = await scene.states(jobs)
        scene.destination.broken = False
        second = await scene.start(canary=3)
        completed = await scene.until(second)

    assert (stopped.state, stopped.stopped_because) == (RedriveState.STOPPED, StopReason.CANARY_FAILED)
    assert (stopped.asked, calls_of_the_canary) == (3, 3)
    assert states == {JobState.DEAD: many}
    assert (await scene.counts(first)).died_again == 3
    assert (completed.state, completed.letters) == (RedriveState.COMPLETED, many)
    assert (await scene.counts(second)).recovered == many
    assert scene.destination.done == dict.fromkeys(jobs, 1)


async def test_a_share_of_deaths_above_the_limit_stops_it(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(30)
        scene.destination.broken = False
        order = [row.id for row in await scene.world.ledger.redrives.preview(scene.world.tenant, LetterFilter())]
        scene.destination.refused = set(order[6::2])  # the canary and the share recover, then every second dies

        redrive_id = await scene.start(canary=3, rate_per_second=3.0)
        stopped = await scene.until(redrive_id)
        counts = await scene.counts(redrive_id)

    assert stopped.state is RedriveState.STOPPED
    assert stopped.stopped_because in (StopReason.TOO_MANY_FAILED, StopReason.TOO_MANY_FAILED_LATELY)
    assert counts.died_again >= 2
    assert counts.waiting == 30 - stopped.asked > 0
    assert (await scene.words_on(jobs)).total() == stopped.asked


async def test_a_paused_one_touches_nothing_and_a_resumed_one_completes(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(8)
        scene.destination.broken = False
        redrive_id = await scene.start(rate_per_second=2.0)
        await scene.until_asked(redrive_id, 2)

        await scene.say(Word.PAUSE, redrive_id)
        asked = (await scene.record(redrive_id)).asked
        await scene.world.ledger.redrives.ask(redrive_id, up_to=8)  # as a worker that has not heard of it would
        await scene.shows(redrive_id, "paused")
        paused = await scene.record(redrive_id)
        await scene.say(Word.RESUME, redrive_id)
        completed = await scene.until(redrive_id)

    assert (paused.state, paused.asked) == (RedriveState.PAUSED, asked)
    assert asked < 8
    assert (completed.state, completed.asked) == (RedriveState.COMPLETED, 8)
    assert scene.destination.done == dict.fromkeys(jobs, 1)


async def test_a_cancelled_one_leaves_the_rest_open_and_free(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(5)
        scene.destination.broken = False
        scene.destination.held.clear()
        first = await scene.start()
        await scene.until_asked(first, 1)

        await scene.say(Word.CANCEL, first)
        await scene.workflow(first).result()
        scene.destination.held.set()
        second = await scene.start()
        completed = await scene.until(second)

    assert (await scene.record(first)).asked == 1
    assert completed.letters == 4
    assert (await scene.words_on(jobs)) == dict.fromkeys(jobs, 1)


async def test_the_next_stage_waits_for_the_canary(scene: BulkScene) -> None:
    async with scene.running():
        await scene.dead_jobs(6)
        scene.destination.broken = False
        scene.destination.held.clear()
        redrive_id = await scene.start(canary=2)
        await scene.until_asked(redrive_id, 2)

        await scene.shows(redrive_id, "running, canary: 2 of 6 letters asked")
        held = await scene.record(redrive_id)
        scene.destination.held.set()
        completed = await scene.until(redrive_id)

    assert held.asked == 2
    assert completed.state is RedriveState.COMPLETED


async def test_a_new_worker_goes_on_where_the_old_one_was(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(10)
        scene.destination.broken = False
        redrive_id = await scene.start(rate_per_second=4.0)
        await scene.until_asked(redrive_id, 3)
    between = await scene.record(redrive_id)

    async with scene.running():
        completed = await scene.until(redrive_id)

    assert between.state is RedriveState.RUNNING
    assert (completed.state, completed.asked) == (RedriveState.COMPLETED, 10)
    assert await scene.words_on(jobs) == dict.fromkeys(jobs, 1)
    assert scene.destination.done == dict.fromkeys(jobs, 1)


async def test_a_workflow_that_was_ended_by_force_is_called_again(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(6)
        scene.destination.broken = False
        redrive_id = await scene.start(rate_per_second=2.0)
        await scene.until_asked(redrive_id, 2)
        await scene.workflow(redrive_id).terminate()

        called = await scene.world.ledger.redrives.call_again(silent_seconds=0)
        completed = await scene.until(redrive_id)

    assert called == 1
    assert completed.state is RedriveState.COMPLETED
    assert await scene.words_on(jobs) == dict.fromkeys(jobs, 1)


async def test_a_letter_that_somebody_else_has_decided_on_is_passed_over(scene: BulkScene) -> None:
    async with scene.running():
        jobs = await scene.dead_jobs(4)
        scene.destination.broken = False
        redrive_id = await scene.start(approval_above=0)
        await scene.world.order("redrive", jobs[0])
        await scene.world.until(jobs[0], JobState.SUCCEEDED)
        await scene.world.order("discard", jobs[1])
        await scene.world.until(jobs[1], JobState.DISCARDED)

        await scene.say(Word.APPROVE, redrive_id, by="rolf", note="go on")
        completed = await scene.until(redrive_id)

    assert completed.state is RedriveState.COMPLETED
    assert await scene.world.ledger.redrives.skipped(redrive_id) == {"discarded": 1, "redriven": 1}
    assert (await scene.counts(redrive_id)).recovered == 2
    assert await scene.words_on(jobs) == {jobs[0]: 1, jobs[2]: 1, jobs[3]: 1}


async def test_a_canary_that_is_alive_after_its_time_lets_the_rest_follow(scene: BulkScene) -> None:
    async with scene.running():
        await scene.dead_jobs(3)
        scene.destination.broken = False
        scene.destination.held.clear()

        redrive_id = await scene.start(share=1.0, verdict_seconds=3)
        await scene.until_asked(redrive_id, 3)
        completed = await scene.until(redrive_id)
        counts = await scene.counts(redrive_id)
        scene.destination.held.set()

    assert completed.state is RedriveState.COMPLETED
    assert counts.no_verdict == 3
