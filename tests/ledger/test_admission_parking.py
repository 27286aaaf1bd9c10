"""A 429 parks its model for all workers until the time that it told."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from agentjobs.domain.admission import FAILURES_TO_OPEN, Hold
from agentjobs.domain.failures import Category
from agentjobs.domain.waits import ASKED_WAIT_LIMIT_SECONDS
from tests.ledger.gate import MODEL, Gate
from tests.ledger.scene import Scene

CLOSE = 2.0


@pytest.fixture
async def gate(scene: Scene) -> Gate:
    """A model without limits."""
    return await Gate.at(scene)


async def test_a_429_parks_the_model_for_everybody_until_then(gate: Gate) -> None:
    await gate.report(await gate.admitted(worker="w1"), Category.RATE_LIMITED, retry_after_seconds=20)

    held = await gate.refused(worker="w2")

    assert held.hold is Hold.PARKED
    assert re.fullmatch(
        rf"held back: model {MODEL} is parked until \d\d:\d\d:\d\d UTC, as its provider asked", str(held)
    )
    assert held.retry_after_seconds == pytest.approx(20, abs=CLOSE)
    await gate.pass_time(20)
    await gate.admitted(worker="w2")


async def test_429s_are_no_failures(gate: Gate) -> None:
    for _ in range(FAILURES_TO_OPEN + 1):
        await gate.report(await gate.admitted(), Category.RATE_LIMITED, retry_after_seconds=20)
        await gate.pass_time(20)

    row = await gate.row()
    assert (row["failures"], row["open_until"]) == (0, None)


async def test_a_shorter_429_does_not_end_the_parking_sooner(gate: Gate) -> None:
    first, second = await gate.admitted(), await gate.admitted()
    await gate.report(first, Category.RATE_LIMITED, retry_after_seconds=100)

    await gate.report(second, Category.RATE_LIMITED, retry_after_seconds=1)

    assert (await gate.refused()).retry_after_seconds == pytest.approx(100, abs=CLOSE)


async def test_an_absurd_429_parks_for_an_hour(gate: Gate) -> None:
    await gate.report(await gate.admitted(), Category.RATE_LIMITED, retry_after_seconds=1e300)

    assert (await gate.refused()).retry_after_seconds == pytest.approx(ASKED_WAIT_LIMIT_SECONDS, abs=CLOSE)


async def test_a_429_without_a_time_parks_nobody(gate: Gate) -> None:
    await gate.ended(Category.RATE_LIMITED)

    await gate.admitted()


async def test_parked_names_the_models_that_nobody_should_ask(gate: Gate) -> None:
    await gate.report(await gate.admitted(), Category.RATE_LIMITED, retry_after_seconds=20)
    await gate.admit(await gate.attempt(), model="free-1")

    parked = await gate.admission.parked([MODEL, "free-1", "unknown-1"])

    assert set(parked) == {MODEL}
    assert parked[MODEL] - datetime.now(UTC) == pytest.approx(timedelta(seconds=20), abs=timedelta(seconds=CLOSE))
