"""Rounds go on without the systems that fail."""

from typing import Any, cast

import pytest

from benchmarks import rounds
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.peers.systems import CELERY, FLOOR, OURS
from benchmarks.rounds import played
from benchmarks.scenarios.scenario import Scenario, Sizes
from benchmarks.series import Value

SERVERS = cast(Servers, None)
"""No scenario here starts anything."""


class Measured:
    """A scenario that notes whom it measured, and fails for some."""

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.order: list[str] = []

    async def __call__(self, system: System, servers: Servers, sizes: Sizes) -> list[Value]:
        self.order.append(system.name)
        if system.name in self.fails:
            raise RuntimeError("out of order")
        return [Value("jobs a second", "1/s", 1.0)]


def scenario_of(measured: Any) -> Scenario:
    return Scenario("throughput", measured, systems=("agentjobs", "floor"))


async def test_systems_take_turns_and_each_round_is_one_value() -> None:
    measured = Measured()

    outcome = await played(scenario_of(measured), [OURS, FLOOR], 2, SERVERS, Sizes())

    assert measured.order == ["agentjobs", "floor", "floor", "agentjobs"]
    assert outcome.series.values["jobs a second", "1/s"] == {"agentjobs": [1.0, 1.0], "floor": [1.0, 1.0]}


async def test_a_system_that_fails_is_left_out_from_then_on_and_told_of() -> None:
    measured = Measured("floor")

    outcome = await played(scenario_of(measured), [OURS, FLOOR], 3, SERVERS, Sizes())

    assert measured.order.count("floor") == 1
    assert outcome.missing == {"floor": "out of order"}
    assert [figure.n for figure in outcome.series.figures()] == [3]


async def test_without_a_redis_server_its_systems_are_told_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "has_redis", lambda: False)
    measured = Measured()

    outcome = await played(scenario_of(measured), [CELERY, FLOOR], 1, SERVERS, Sizes())

    assert measured.order == ["floor"]
    assert "redis-server" in outcome.missing["celery"]
