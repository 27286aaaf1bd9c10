"""A provider in trouble is left alone by all workers, tried by one call, and used again."""

import asyncio
import re
from datetime import UTC, datetime

import pytest

from agentjobs.domain.admission import (
    FAILURES_TO_OPEN,
    LONGEST_OPEN_SECONDS,
    OPEN_SECONDS,
    PROBE_SECONDS,
    Hold,
)
from agentjobs.domain.failures import Category
from tests.ledger.gate import MODEL, Gate
from tests.ledger.scene import Scene

AWAY = Category.UNAVAILABLE
CLOSE = 2.0


@pytest.fixture
async def gate(scene: Scene) -> Gate:
    """A model without limits."""
    return await Gate.at(scene)


async def _break(gate: Gate) -> None:
    for number in range(FAILURES_TO_OPEN):
        await gate.ended(AWAY, worker=f"w{number % 2 + 1}")


async def _open_for(gate: Gate) -> float:
    row = await gate.row()
    return float((row["open_until"] - datetime.now(UTC)).total_seconds())


async def test_the_whole_life_of_a_breaker_with_two_workers(gate: Gate) -> None:
    await _break(gate)
    broken = [(await gate.refused(worker=worker)).hold for worker in ("w1", "w2")]

    await gate.pass_time(OPEN_SECONDS)
    probe = await gate.admitted(worker="w1")
    probed = await gate.refused(worker="w2")
    await gate.report(probe, AWAY)
    again = await gate.refused(worker="w2")
    longer = await _open_for(gate)

    await gate.pass_time(2 * OPEN_SECONDS)
    probe = await gate.admitted(worker="w2")
    await gate.report(probe)
    await gate.admitted(worker="w1")
    await gate.admitted(worker="w2")

    assert broken == [Hold.BROKEN, Hold.BROKEN]
    assert (probed.hold, again.hold) == (Hold.PROBED, Hold.BROKEN)
    assert longer == pytest.approx(2 * OPEN_SECONDS, abs=CLOSE)
    row = await gate.row()
    assert (row["failures"], row["openings"], row["open_until"]) == (0, 0, None)


async def test_one_failure_less_does_not_open_it(gate: Gate) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        await gate.ended(AWAY)

    await gate.admitted()


async def test_failures_are_counted_in_a_row(gate: Gate) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        await gate.ended(Category.TIMEOUT)
    await gate.ended()
    await gate.ended(AWAY)

    await gate.admitted()


async def test_failures_reported_at_the_same_moment_are_all_counted(gate: Gate) -> None:
    attempts = [await gate.admitted() for _ in range(FAILURES_TO_OPEN)]
    async with gate.row_held():
        reports = [asyncio.create_task(gate.report(attempt_id, AWAY)) for attempt_id in attempts]
        await gate.scene.until_under_way(reports)
    await asyncio.gather(*reports)

    assert (await gate.refused()).hold is Hold.BROKEN


async def test_a_report_that_comes_again_is_counted_once(gate: Gate) -> None:
    attempt_id = await gate.admitted()

    for _ in range(FAILURES_TO_OPEN):
        await gate.report(attempt_id, AWAY)

    assert (await gate.row())["failures"] == 1


async def test_a_report_of_a_call_that_was_not_let_through_tells_nothing(gate: Gate) -> None:
    await gate.report(await gate.attempt(), AWAY)

    assert (await gate.row())["failures"] == 0


async def test_a_report_counts_however_its_attempt_ended(gate: Gate) -> None:
    attempt_id = await gate.admitted()
    await gate.scene.ledger.effects.abandon_attempt(attempt_id)

    await gate.report(attempt_id, AWAY)

    assert (await gate.row())["failures"] == 1


async def test_the_refusal_says_until_when_and_why(gate: Gate) -> None:
    await _break(gate)

    held = await gate.refused()

    assert re.fullmatch(
        rf"held back: model {MODEL} is parked until \d\d:\d\d:\d\d UTC after 5 failures \(unavailable\)", str(held)
    )
    assert held.retry_after_seconds == pytest.approx(OPEN_SECONDS, abs=CLOSE)


async def test_it_stays_open_longer_each_time_up_to_a_minute(gate: Gate) -> None:
    await _break(gate)
    waits = [await _open_for(gate)]

    for _ in range(6):
        await gate.pass_time(LONGEST_OPEN_SECONDS)
        await gate.ended(AWAY)
        waits.append(await _open_for(gate))

    assert waits == pytest.approx([5, 10, 20, 40, 60, 60, 60], abs=CLOSE)


async def test_after_a_success_it_opens_for_the_first_time_again(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)
    await gate.ended(AWAY)
    await gate.pass_time(2 * OPEN_SECONDS)
    await gate.ended()

    await _break(gate)

    assert await _open_for(gate) == pytest.approx(OPEN_SECONDS, abs=CLOSE)


async def test_of_those_that_come_at_the_same_moment_one_is_the_probe(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)

    held = await gate.at_the_same_moment([await gate.attempt(f"w{number}") for number in range(8)])

    assert held.count(None) == 1
    assert {one.hold for one in held if one} == {Hold.PROBED}
    waits = [one.retry_after_seconds or 0 for one in held if one]
    assert min(waits) == pytest.approx(PROBE_SECONDS, abs=CLOSE)


async def test_a_probe_that_is_not_heard_of_again_is_followed_by_another(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)
    await gate.admitted(worker="w1")

    await gate.pass_time(PROBE_SECONDS - 5)
    before = await gate.refused(worker="w2")
    await gate.pass_time(5)
    await gate.admitted(worker="w2")

    assert before.hold is Hold.PROBED


async def test_a_probe_whose_worker_is_known_to_be_dead_is_followed_at_once(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)
    await gate.admitted(worker="w3")
    await gate.scene.execute("INSERT INTO workers (id, number, identity, lost_at) VALUES ('w3', 3, 'w3', now())")
    before = await gate.refused(worker="w2")

    await gate.scene.ledger.workers.mark_taken_over("w3")

    assert before.hold is Hold.PROBED
    await gate.admitted(worker="w2")


async def test_calls_that_began_before_it_opened_do_not_keep_it_open(gate: Gate) -> None:
    early = [await gate.admitted() for _ in range(FAILURES_TO_OPEN + 3)]
    for attempt_id in early[:FAILURES_TO_OPEN]:
        await gate.report(attempt_id, AWAY)
    before = await gate.row()

    for attempt_id in early[FAILURES_TO_OPEN:]:
        await gate.report(attempt_id, AWAY)

    assert await gate.row() == before


async def test_calls_that_began_before_it_closed_do_not_open_it_again(gate: Gate) -> None:
    early = [await gate.admitted() for _ in range(FAILURES_TO_OPEN)]
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)
    await gate.ended()

    for attempt_id in early:
        await gate.report(attempt_id, Category.TIMEOUT)

    await gate.admitted()


async def test_a_late_failure_of_an_earlier_probe_does_not_end_the_present_one(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)
    late = await gate.admitted()
    await gate.pass_time(PROBE_SECONDS)
    probe = await gate.admitted()

    await gate.report(late, AWAY)

    assert (await gate.row())["probe_attempt_id"] == probe


@pytest.mark.parametrize("answer", [Category.BAD_OUTPUT, Category.CONTENT_REFUSED, Category.INVALID_INPUT])
async def test_an_answer_that_pleases_nobody_closes_it_all_the_same(gate: Gate, answer: Category) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)

    await gate.ended(answer)

    assert (await gate.row())["open_until"] is None


async def test_a_probe_that_tells_nothing_leaves_the_next_one_to_tell(gate: Gate) -> None:
    await _break(gate)
    await gate.pass_time(OPEN_SECONDS)

    await gate.ended(Category.DEADLINE_EXCEEDED)

    await gate.admitted()
    assert (await gate.refused()).hold is Hold.PROBED


async def test_parked_follows_the_breaker(gate: Gate) -> None:
    names = []
    await _break(gate)
    names.append(set(await gate.admission.parked([MODEL])))
    await gate.pass_time(OPEN_SECONDS)
    names.append(set(await gate.admission.parked([MODEL])))
    probe = await gate.admitted()
    names.append(set(await gate.admission.parked([MODEL])))
    await gate.report(probe)
    names.append(set(await gate.admission.parked([MODEL])))

    assert names == [{MODEL}, set(), {MODEL}, set()]
