"""Jobs a second from end to end at model calls of no length, CPU of a job by process, and whether that grows."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.peers.cpu import milliseconds_each
from benchmarks.peers.running import running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value, slope

JOBS = 300
WARM = 30
"""A pool is filled, caches are warm, and the server's ticks have begun."""

BATCH = 500
SHOWN_FROM = 0.05
"""Milliseconds: of servers that a system does not use, nothing is told."""

RATE = "jobs a second"
CPU = "CPU of a job"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """Batches, one after the other."""
    batches = batches_of(sizes.jobs or JOBS)
    async with running(system, servers) as up:
        await up.batch(jobs_of(WARM))
        began = before = up.cpu()
        seconds, each = 0.0, []
        for size in batches:
            seconds += await up.batch(jobs_of(size))
            after = up.cpu()
            each.append(milliseconds_each(before, after, size)["all"])
            before = after
    growth = [Value("CPU of a job: growth over 1,000 jobs", "ms", slope(each) * 1_000 / BATCH)] if each[2:] else []
    return [Value(RATE, "1/s", sum(batches) / seconds), *cpu_of(system, began, before, sum(batches)), *growth]


def cpu_of(system: System, before: Mapping[str, float], after: Mapping[str, float], jobs: int) -> list[Value]:
    """CPU of a job, in all and by process. before, after: seconds by process."""
    each = milliseconds_each(before, after, jobs)
    return [
        Value(CPU, "ms", each.pop("all")),
        *(
            Value(f"{CPU}: {name.removeprefix(system.name + '-')}", "ms", used)
            for name, used in each.items()
            if used > SHOWN_FROM
        ),
    ]


def batches_of(jobs: int) -> list[int]:
    """Of BATCH, and what is left over."""
    return [BATCH] * (jobs // BATCH) + ([jobs % BATCH] if jobs % BATCH else [])


SCENARIO = Scenario(
    "throughput",
    measure,
    systems=(
        "agentjobs", "agentjobs-short", "agentjobs-2", "floor", "floor-unsandboxed", "floor-8",
        "floor-ticket", "celery", "celery-chain", "rq", "dramatiq", "dbos",
        "procrastinate",
    ),
    compared=(RATE, CPU),
)  # fmt: skip
