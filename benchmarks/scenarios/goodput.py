"""Jobs of many paid steps while the worker is killed again and again: what gets done, and what that costs."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from benchmarks.calls import Calls
from benchmarks.peers.running import Running, running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.peers.systems import asking_the_model
from benchmarks.scenarios.crash import JOBS, STEPS, WARM, repeated_of
from benchmarks.scenarios.crash import SCENARIO as CRASH
from benchmarks.scenarios.crash import SECONDS as STEP_SECONDS
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value

KILL_EVERY_SECONDS = 5.0
SECONDS = 120.0
SUPPLY = 2_000
"""More jobs than anybody gets done."""

DONE = "finished jobs a minute"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """Always JOBS in hand. sizes.seconds: of the whole."""
    seconds = sizes.seconds or SECONDS
    jobs = jobs_of(SUPPLY, STEPS, STEP_SECONDS)
    async with running(asking_the_model(system), servers) as up:
        await up.batch(jobs_of(WARM, 5, 0.01))
        going = asyncio.create_task(up.ask("keep_going", jobs, at_once=sizes.jobs or JOBS, limit_seconds=seconds))
        starts = await _killed(up, going)
        over = len((await going)["over"])
    calls = Calls.read(servers.calls, [job.id for job in jobs])
    paid = [Value("paid calls of a finished job", "calls", len(calls.asked) / over)] if over else []
    return [
        Value(DONE, "1/min", over * 60 / seconds),
        *paid,
        *repeated_of(calls),
        Value("kills", "kills", len(starts)),
        *([Value("a worker's start", "s", statistics.median(starts))] if starts else []),
    ]


async def _killed(up: Running, going: asyncio.Task[dict[str, Any]]) -> list[float]:
    """Every few seconds, until the time is up; a worker that takes longer to start than that is let start first.

    Returns how long each start took.
    """
    starts: list[float] = []
    due = time.monotonic() + KILL_EVERY_SECONDS
    while True:
        done, _ = await asyncio.wait([going], timeout=due - time.monotonic())
        if done:
            return starts
        killed_at = await up.crash()
        starts.append(time.time() - killed_at)
        due += KILL_EVERY_SECONDS
        if due < time.monotonic():
            due = time.monotonic() + KILL_EVERY_SECONDS


SCENARIO = Scenario("goodput", measure, systems=CRASH.systems, compared=(DONE,))
