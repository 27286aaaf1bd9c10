"""Rounds: every system in turn, in an order that changes, so that what the machine does else hits all alike."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentjobs.stack.errors import StackError
from benchmarks.peers.servers import Servers, has_redis
from benchmarks.peers.system import System
from benchmarks.scenarios.scenario import Scenario, Sizes
from benchmarks.series import Series


@dataclass
class Outcome:
    """What came of one scenario; `missing` says of systems why they have no figures."""

    scenario: Scenario
    series: Series
    missing: dict[str, str]


async def played(
    scenario: Scenario, systems: Sequence[System], rounds: int, servers: Servers, sizes: Sizes
) -> Outcome:
    """All rounds of one scenario. A system that fails is left out from then on, and told of."""
    outcome = Outcome(scenario, Series(), {})
    for number in range(rounds):
        for system in ordered(systems, number):
            if system.name not in outcome.missing:
                await _measure(outcome, system, servers, sizes, number)
    return outcome


async def _measure(outcome: Outcome, system: System, servers: Servers, sizes: Sizes, number: int) -> None:
    began = time.monotonic()
    if system.needs_redis and not has_redis():
        outcome.missing[system.name] = "no redis-server on this machine: Debian's package redis-server has it"
        return
    try:
        values = await outcome.scenario.measure(system, servers, sizes)
    except (StackError, RuntimeError, OSError) as error:
        outcome.missing[system.name] = str(error)[:500]
    else:
        outcome.series.add(system.name, values)
    told = outcome.missing.get(system.name) or f"{values[0].what} {values[0].value:.4g}"
    seconds = time.monotonic() - began
    sys.stderr.write(f"{outcome.scenario.name}, round {number + 1}, {system.name}: {told} ({seconds:.0f} s)\n")


def ordered(systems: Sequence[System], number: int) -> Iterable[System]:
    """Forwards and backwards in turn."""
    return systems if number % 2 == 0 else reversed(systems)
