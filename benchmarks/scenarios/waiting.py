"""Many jobs inside one long model call at the same time, in one worker process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchmarks.calls import Calls
from benchmarks.peers.running import LIMIT_SECONDS, Running, running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.peers.systems import OURS, asking_the_model, for_many
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.scenarios.throughput import cpu_of
from benchmarks.series import Value

JOBS = 1_000
SECONDS = 60.0
WARM = 5
INSIDE = "seconds until all are inside"
NO_CAP = "UPDATE tenants SET running_cap = 1000000"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """All handed in, all inside, all done."""
    jobs = jobs_of(sizes.jobs or JOBS, seconds=sizes.seconds or SECONDS)
    names = [job.id for job in jobs]
    async with running(for_many(asking_the_model(system), len(jobs)), servers) as up:
        if system.module == OURS.module:
            await up.value(NO_CAP)
        await up.batch(jobs_of(WARM, 1, 0.01))
        before, cpu_before, began = up.worker_bytes, up.cpu(), time.time()
        await up.ask("submit", jobs, at_once=16)
        memory = await _until_all_inside(up, names)
        answer = await up.ask("until_over", jobs, limit_seconds=LIMIT_SECONDS)
        seconds = time.time() - began
        cpu = cpu_of(system, cpu_before, up.cpu(), len(jobs))
    calls = Calls.read(servers.calls, names)
    first = {line.job: line.at for line in reversed(calls.asked)}
    return [
        Value(INSIDE, "s", max(first.values()) - began),
        Value("memory of a waiting job", "KiB", (memory - before) / 1024 / len(jobs)),
        Value("seconds until all are done", "s", seconds),
        Value("jobs lost", "jobs", len(jobs) - answer["over"]),
        Value("calls repeated", "calls", calls.repeated),
        *cpu,
    ]


async def _until_all_inside(up: Running, names: Sequence[str]) -> int:
    """The worker's memory then, or the most of it, if they never were all inside at the same time."""
    end, most = time.monotonic() + LIMIT_SECONDS, 0
    while time.monotonic() < end:
        most = max(most, up.worker_bytes)
        calls = Calls.read(up.servers.calls, names)
        if len({line.job for line in calls.asked}) == len(names):
            return most
        await asyncio.sleep(0.2)
    raise RuntimeError(f"{up.system.name}: not all jobs got inside")


SCENARIO = Scenario(
    "waiting",
    measure,
    systems=("agentjobs", "temporal", "celery", "dramatiq", "dbos", "procrastinate"),
    compared=(INSIDE,),
)
