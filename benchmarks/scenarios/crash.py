"""The worker is killed in the middle of jobs of many paid steps, and started again at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchmarks.calls import Calls
from benchmarks.peers.running import Running, running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import Job, System
from benchmarks.peers.systems import OURS, asking_the_model
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value

JOBS = 20
STEPS = 10
SECONDS = 0.3
WARM = 5
KILLED_AFTER = 0.4
"""Of all calls, when the kill comes."""

LIMIT_SECONDS = 90.0
"""Who has not moved by then is stuck."""

MOVING = "seconds until all jobs move again"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """One kill."""
    jobs = jobs_of(sizes.jobs or JOBS, STEPS, sizes.seconds or SECONDS)
    names = [job.id for job in jobs]
    async with running(asking_the_model(system), servers) as up:
        await up.batch(jobs_of(WARM, 5, 0.01))
        warm = await tickets(up)
        await up.ask("submit", jobs, at_once=len(jobs))
        await _until_answered(servers, names, round(len(jobs) * STEPS * KILLED_AFTER))
        killed_at = await up.crash()
        moving = await _until_all_move(servers, names, killed_at)
        answer = await up.ask("until_over", jobs, limit_seconds=LIMIT_SECONDS if len(moving) == len(jobs) else 1)
        opened = await tickets(up) - warm
    return [*values_of(moving, Calls.read(servers.calls, names), jobs, answer["over"]),
            Value("tickets beyond one for each finished job", "tickets", opened - answer["over"])]  # fmt: skip


def values_of(moving: dict[str, float], calls: Calls, jobs: Sequence[Job], over: int) -> list[Value]:
    """What came of it. moving: by job, the seconds until it moved."""
    stuck = len(jobs) - len(moving)
    return [
        Value(MOVING, "s", LIMIT_SECONDS if stuck else max(moving.values())),
        Value(f"jobs stuck for {LIMIT_SECONDS:g} s", "jobs", stuck),
        *repeated_of(calls),
        Value("jobs that ended well", "jobs", over),
    ]


def repeated_of(calls: Calls) -> list[Value]:
    """What was paid for more than once."""
    return [
        Value("calls repeated", "calls", calls.repeated),
        Value("calls repeated, once answered", "calls", calls.repeated_answered),
        Value("calls repeated after the next one", "calls", calls.repeated_late),
    ]


async def tickets(up: Running) -> int:
    """How many there are."""
    table = "tickets" if up.system.module == OURS.module else "bench_tickets"
    return int(await up.value(f"SELECT count(*) FROM {table}"))  # noqa: S608 - one of two names above


async def _until_answered(servers: Servers, names: Sequence[str], count: int) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while len(Calls.read(servers.calls, names).answered) < count:
        if time.monotonic() > end:
            raise RuntimeError("the jobs did not get to their middle")
        await asyncio.sleep(0.02)


async def _until_all_move(servers: Servers, names: Sequence[str], killed_at: float) -> dict[str, float]:
    while time.time() < killed_at + LIMIT_SECONDS:
        moving = Calls.read(servers.calls, names).moved_after(killed_at)
        if len(moving) == len(names):
            break
        await asyncio.sleep(0.1)
    return moving


SCENARIO = Scenario(
    "crash",
    measure,
    systems=(
        "agentjobs",
        "temporal",
        "temporal-tuned",
        "celery",
        "celery-default",
        "celery-tuned",
        "rq-20",
        "dramatiq",
        "dramatiq-tuned",
        "dbos",
        "dbos-default",
        "procrastinate",
        "procrastinate-tuned",
    ),
    compared=(MOVING,),
)
