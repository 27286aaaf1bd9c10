"""One job at a time, on a system that has nothing else to do: until the client has heard of its end."""

from __future__ import annotations

from benchmarks.peers.running import running
from benchmarks.peers.servers import Servers
from benchmarks.peers.system import System
from benchmarks.scenarios.scenario import Scenario, Sizes, jobs_of
from benchmarks.series import Value, percentile

JOBS = 100
WARM = 20
MEDIAN = "latency p50"
HIGH = "latency p95"


async def measure(system: System, servers: Servers, sizes: Sizes) -> list[Value]:
    """Each after the one before."""
    async with running(system, servers) as up:
        await up.batch(jobs_of(WARM))
        answer = await up.ask("one_by_one", jobs_of(sizes.jobs or JOBS))
    took = [seconds * 1_000 for seconds in answer["each"]]
    return [Value(MEDIAN, "ms", percentile(took, 50)), Value(HIGH, "ms", percentile(took, 95))]


SCENARIO = Scenario(
    "latency",
    measure,
    systems=(
        "agentjobs", "agentjobs-short", "floor", "floor-8",
        "celery", "celery-chain", "rq", "dramatiq", "dbos", "dbos-default",
        "procrastinate",
    ),
    compared=(MEDIAN, HIGH),
)  # fmt: skip
