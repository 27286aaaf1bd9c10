"""A model's calls at once: never more than its cap, and no slot is lost with its worker."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agentjobs.domain.admission import Hold, Limits
from agentjobs.domain.failures import Category, RetryableError
from tests.ledger.gate import MODEL, Gate
from tests.ledger.scene import Scene
from tests.world import eventually


async def test_fifty_at_once_are_never_more_in_flight_than_the_cap(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=8)
    attempts = [await gate.attempt() for _ in range(50)]

    held = await asyncio.gather(*(gate.admit(attempt_id) for attempt_id in attempts))

    assert held.count(None) == 8
    assert await gate.in_flight() == 8
    assert {str(one) for one in held if one} == {f"held back: model {MODEL} has its 8 calls at once"}


async def test_fifty_jobs_that_come_again_and_again_all_get_through_under_the_cap(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=8)
    seen: list[int] = []

    async def call(attempt_id: int) -> None:
        await eventually(lambda: _let_through(gate, attempt_id), "a slot")
        seen.append(await gate.in_flight())
        await scene.ledger.effects.abandon_attempt(attempt_id)

    await asyncio.gather(*[call(await gate.attempt()) for _ in range(50)])

    assert len(seen) == 50
    assert max(seen) <= 8


async def test_of_those_that_waited_for_the_row_together_only_as_many_as_fit_are_let_through(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)

    held = await gate.at_the_same_moment([await gate.attempt() for _ in range(8)])

    assert held.count(None) == 1
    assert await gate.in_flight() == 1


async def test_a_call_that_is_held_back_cost_nothing_and_may_come_again(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    await gate.admitted()

    held = await gate.refused()

    assert (held.category, held.hold, held.nothing_happened) == (Category.RATE_LIMITED, Hold.CALLS, True)
    assert held.retry_after_seconds is not None
    assert 0 < held.retry_after_seconds <= 2.1


async def _let_through(gate: Gate, attempt_id: int) -> bool:
    return await gate.admit(attempt_id) is None


async def _completed(gate: Gate, attempt_id: int) -> None:
    step = (await gate.scene.ledger.jobs.attempts(gate.job_id))[-1].step
    await gate.scene.ledger.effects.complete(gate.scene.intent(gate.job_id, step), attempt_id, {"text": "done"})


async def _failed(gate: Gate, attempt_id: int) -> None:
    await gate.scene.fail(attempt_id, release=True)


async def _abandoned(gate: Gate, attempt_id: int) -> None:
    await gate.scene.ledger.effects.abandon_attempt(attempt_id)


async def _taken_over(gate: Gate, _: int) -> None:
    await gate.scene.execute("INSERT INTO workers (id, number, identity, lost_at) VALUES ('w1', 1, 'w1', now())")
    await gate.scene.ledger.workers.mark_taken_over("w1")


@pytest.mark.parametrize("end", [_completed, _failed, _abandoned, _taken_over])
async def test_the_end_of_an_attempt_frees_its_slot(
    scene: Scene, end: Callable[[Gate, int], Awaitable[None]]
) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    attempt_id = await gate.admitted(worker="w1")
    before = await gate.refused(worker="w2")

    await end(gate, attempt_id)

    assert before.hold is Hold.CALLS
    assert await gate.admit(await gate.attempt("w2")) is None
    assert await gate.in_flight() == 1


async def test_the_next_attempt_of_a_step_frees_the_slot_of_the_one_that_crashed(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    await gate.admitted()
    step = (await scene.ledger.jobs.attempts(gate.job_id))[-1].step

    again = await scene.begin_attempt(gate.job_id, step, attempt=2, worker="w2")

    assert await gate.admit(again) is None


async def test_an_admission_that_is_asked_for_again_is_the_same_one(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1, requests_per_minute=60, tokens_per_minute=600)
    attempt_id = await gate.admitted(tokens=10)
    before = await gate.row()

    again = await gate.admit(attempt_id, tokens=10)

    assert again is None
    assert await gate.row() == before


async def test_an_attempt_that_is_over_is_not_let_through(scene: Scene) -> None:
    gate = await Gate.at(scene)
    attempt_id = await gate.attempt()
    await scene.ledger.effects.abandon_attempt(attempt_id)

    with pytest.raises(RetryableError) as refused:
        await gate.admission.admit(MODEL, attempt_id, tokens=0, limits=Limits())

    assert (refused.value.category, refused.value.nothing_happened) == (Category.UNAVAILABLE, True)
    assert await gate.admitted_times() == []


async def test_an_attempt_that_is_ended_while_it_waits_at_the_gate_ends_without_a_deadlock(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    attempt_id = await gate.attempt()
    async with gate.row_held():
        asking = asyncio.create_task(gate.admit(attempt_id))
        await scene.until_under_way([asking])
        ending = asyncio.create_task(scene.fail(attempt_id, release=True))
        await scene.until_under_way([asking, ending])

    await asyncio.gather(asking, ending)
    assert len(await gate.admitted_times()) == 1
    assert await gate.in_flight() == 0


async def test_a_model_that_nobody_asked_before_gets_its_row(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    attempts = [await gate.attempt() for _ in range(6)]

    held = await asyncio.gather(*(gate.admit(attempt_id, model="new-1") for attempt_id in attempts))

    assert held.count(None) == 1
    assert await scene.count("model_admission") == 2


async def test_models_do_not_hold_each_other_back(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=1)
    await gate.admitted()

    other = await gate.admit(await gate.attempt(), model="large-1")

    assert other is None


async def test_without_limits_all_are_let_through(scene: Scene) -> None:
    gate = await Gate.at(scene)

    for _ in range(12):
        await gate.admitted(tokens=1_000_000)

    assert await gate.in_flight() == 12
