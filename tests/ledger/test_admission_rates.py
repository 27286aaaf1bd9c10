"""Rates: exact over any minute, caught up on in small bursts, corrected by what calls really used."""

from datetime import timedelta
from itertools import pairwise

import pytest

from agentjobs.domain.admission import (
    BURST_SECONDS,
    MINUTE_SECONDS,
    PLACE_SECONDS,
    ROUND_SECONDS,
    Hold,
)
from tests.ledger.gate import MODEL, Gate
from tests.ledger.scene import Scene

CLOSE = 2.0
"""Seconds by which the clock may run on between two statements on a busy machine."""


@pytest.mark.parametrize("limit", [1, 7, 60])
async def test_any_minute_takes_exactly_what_the_model_allows(scene: Scene, limit: int) -> None:
    gate = await Gate.at(scene, requests_per_minute=limit)

    for _ in range(2 * limit + 3):  # each comes when it was told to
        attempt_id, held = await gate.ask()
        if held is not None:
            assert held.retry_after_seconds is not None
            await gate.pass_time(held.retry_after_seconds)
            assert await gate.admit(attempt_id) is None

    times = await gate.admitted_times()
    windows = [sum(start <= at < start + timedelta(minutes=1) for at in times) for start in times]
    assert max(windows) == windows[0] == limit


async def test_a_small_burst_is_let_through_at_once_and_then_the_steady_rate_holds(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=60)

    first = [(await gate.ask())[1] for _ in range(4)]

    held = first[-1]
    assert first[:3] == [None, None, None]
    assert held is not None
    assert (held.hold, str(held)) == (Hold.REQUESTS, f"held back: model {MODEL} allows 60 requests a minute")
    assert held.retry_after_seconds == pytest.approx(3 * MINUTE_SECONDS / 60 - BURST_SECONDS, abs=0.15)


async def test_what_was_not_used_for_long_is_not_saved_up(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=6)
    await gate.admitted()
    await gate.pass_time(3600)

    await gate.admitted()

    assert (await gate.refused()).hold is Hold.REQUESTS


async def test_tokens_are_held_back_at_the_rate_of_what_was_reserved(scene: Scene) -> None:
    gate = await Gate.at(scene, tokens_per_minute=600)
    await gate.admitted(tokens=300)

    held = await gate.refused(tokens=1)

    assert str(held) == f"held back: model {MODEL} allows 600 tokens a minute"
    assert held.retry_after_seconds == pytest.approx(MINUTE_SECONDS / 2 - BURST_SECONDS, abs=CLOSE)
    await gate.pass_time(MINUTE_SECONDS / 2 - BURST_SECONDS)
    await gate.admitted(tokens=300)


@pytest.mark.parametrize(("used", "wait"), [(0, None), (20, None), (300, 28.5), (400, 39.0), (None, 28.5)])
async def test_what_a_call_really_used_corrects_the_meter(
    scene: Scene, used: int | None, wait: float | None
) -> None:
    gate = await Gate.at(scene, tokens_per_minute=600)
    attempt_id = await gate.admitted(tokens=300)

    await gate.report(attempt_id, tokens=used)

    _, held = await gate.ask(tokens=1)
    if wait is None:
        assert held is None
    else:
        assert held is not None
        assert held.retry_after_seconds == pytest.approx(wait, abs=CLOSE)


async def test_a_report_that_comes_again_corrects_nothing(scene: Scene) -> None:
    gate = await Gate.at(scene, tokens_per_minute=600)
    attempt_id = await gate.admitted(tokens=300)
    await gate.report(attempt_id, tokens=200)
    before = await gate.row()

    await gate.report(attempt_id, tokens=200)

    assert await gate.row() == before


async def test_a_call_larger_than_a_minute_is_let_through_and_the_next_waits_for_it(scene: Scene) -> None:
    gate = await Gate.at(scene, tokens_per_minute=100)

    await gate.admitted(tokens=200)

    held = await gate.refused(tokens=1)
    assert held.retry_after_seconds == pytest.approx(2 * MINUTE_SECONDS - BURST_SECONDS, abs=CLOSE)


async def test_of_two_limits_the_one_that_lasts_longer_is_told(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=10, tokens_per_minute=600)
    await gate.admitted(tokens=500)

    held = await gate.refused(tokens=1)

    assert held.hold is Hold.TOKENS


async def test_those_that_are_held_back_are_told_to_come_one_after_the_other(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=60)
    for _ in range(3):
        await gate.admitted()

    waits = [(await gate.refused()).retry_after_seconds or 0 for _ in range(4)]

    steps = [later - earlier for earlier, later in pairwise(waits)]
    assert steps == pytest.approx([MINUTE_SECONDS / 60] * 3, abs=0.5)


async def test_nobody_is_told_a_place_beyond_the_round(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=4)
    await gate.admitted()

    waits = [(await gate.refused()).retry_after_seconds or 0 for _ in range(10)]

    longest = MINUTE_SECONDS / 4 - BURST_SECONDS + ROUND_SECONDS
    assert max(waits) <= longest
    assert waits[3] > 59
    assert waits[4] == pytest.approx(waits[0], abs=CLOSE)  # the places began anew


async def test_places_come_as_often_as_calls_end(scene: Scene) -> None:
    gate = await Gate.at(scene, calls_at_once=2)
    await scene.execute("UPDATE model_admission SET call_seconds = 30")
    for _ in range(2):
        await gate.admitted()

    waits = [(await gate.refused()).retry_after_seconds or 0 for _ in range(3)]

    assert waits == pytest.approx([15, 30, 45], abs=CLOSE)


async def test_how_long_calls_take_is_learned_from_those_that_work(scene: Scene) -> None:
    gate = await Gate.at(scene)
    attempt_id = await gate.admitted()
    await gate.pass_time(12)

    await gate.report(attempt_id)

    assert (await gate.row())["call_seconds"] == pytest.approx(2 + (12 - 2) * 0.2, abs=0.5)


async def test_without_a_rate_those_held_back_still_come_apart(scene: Scene) -> None:
    gate = await Gate.at(scene)
    await scene.execute("UPDATE model_admission SET parked_until = now() + interval '30 seconds'")

    first, second = [(await gate.refused()).retry_after_seconds or 0 for _ in range(2)]

    row = await gate.row()
    assert row["next_place_at"] - row["parked_until"] == timedelta(seconds=2 * PLACE_SECONDS)
    assert (first, second) == pytest.approx((30, 30), abs=CLOSE)


async def test_a_limit_that_was_lifted_holds_nobody_back(scene: Scene) -> None:
    gate = await Gate.at(scene, requests_per_minute=1)
    await gate.admitted()

    free = Gate(scene, gate.job_id, limits=gate.limits.model_copy(update={"requests_per_minute": None}))

    assert await free.admit(await gate.attempt()) is None
