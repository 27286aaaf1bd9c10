"""How quickly jobs are accepted, and what that costs the process that accepts them. Nobody carries them out."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.cpu import milliseconds_each
from benchmarks.peers.running import running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value, percentile

JOBS = 1_000
WARM = 50
AT_ONCE = 16
RATE = "accepted jobs a second"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """With one process that accepts and with two, where the system has such."""
    values = await _accepted(system, servers, sizes, "")
    if "api" in system.processes:
        values += await _accepted(with_two(system), servers, sizes, ", two API processes")
    return values


def with_two(system: System) -> System:
    """The system with a second API."""
    second = {"api-2": system.processes["api"], **system.processes}
    return replace(system, processes=second, ready={**system.ready, "api-2": system.ready["api"]})


async def _accepted(system: System, servers: Servers, sizes: Sizes, how: str) -> list[Value]:
    jobs = jobs_of(sizes.jobs or JOBS)
    accepting = {name: argv for name, argv in system.processes.items() if name.startswith("api")}
    async with running(replace(system, processes=accepting), servers) as up:
        await up.ask("submit", jobs_of(WARM), at_once=AT_ONCE)
        before = up.cpu()
        answer = await up.ask("submit", jobs, at_once=AT_ONCE)
        cpu = milliseconds_each(before, up.cpu(), len(jobs))
    took = [seconds * 1_000 for seconds in answer["each"]]
    return [
        Value(f"{RATE}{how}", "1/s", len(jobs) / answer["seconds"]),
        Value(f"answer p50{how}", "ms", percentile(took, 50)),
        Value(f"answer p99{how}", "ms", percentile(took, 99)),
        Value(f"CPU of an acceptance: who accepts{how}", "ms", sum(_accepters(cpu))),
        Value(f"CPU of an acceptance: the client{how}", "ms", cpu["client"]),
        Value(f"CPU of an acceptance: PostgreSQL{how}", "ms", cpu["postgres"]),
        Value(f"CPU of an acceptance: Temporal{how}", "ms", cpu["temporal"]),
    ]


def _accepters(cpu: dict[str, float]) -> list[float]:
    return [used for name, used in cpu.items() if "-api" in name]


SCENARIO = Scenario("submission", measure, systems=("agentjobs", "floor"), compared=(RATE,))
