"""How long a killed worker's jobs stand still: `python -m tests.chaos.takeover_times [KILLS]`.

Each kill hits a worker whose activities hang inside a model call or right after a tool's commit. Measured is, for
each job that it had in hand, the time from the kill until the ledger shows the job's next step forward.
"""

import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from agentjobs.domain.states import JobState
from tests.chaos.client import Client
from tests.chaos.rig import VICTIM, Rig, running_rig, until

KILLS = 10
JOBS = 6
FAILPOINTS = ("effect.before_call", "tool.after_commit")
GATHERING_SECONDS = 1.5
"""From the first job in its hand to the kill, so that more come there."""

FALLBACK_SECONDS = 10.0
"""The heartbeat timeout, by which a death would be noticed without a takeover."""

# A job is in hand when an attempt of a worker that still is there has begun, and nothing has followed it yet.
_IN_HAND = """
SELECT DISTINCT jobs.id FROM jobs
  JOIN LATERAL (SELECT worker FROM attempts WHERE job_id = jobs.id ORDER BY id DESC LIMIT 1) last ON true
  JOIN workers ON workers.id = last.worker
 WHERE jobs.id = ANY ($1) AND split_part(workers.identity, ':', 2) = $2 AND jobs.state = 'running'
   AND jobs.updated_at < clock_timestamp() - interval '0.5 seconds'"""
_MOVED = "SELECT id, updated_at FROM jobs WHERE id = ANY ($1) AND updated_at > $2"


async def measured(home: Path, *, workers: int, kills: int) -> list[list[float]]:
    """For each kill, how long each of its jobs stood still."""
    stood_still = []
    async with running_rig(home, workers=workers) as rig:
        client = rig.client([], rig.stack.info.api_key)
        for number in range(kills):
            failpoint = FAILPOINTS[number % len(FAILPOINTS)]
            await rig.arm(VICTIM, f"{failpoint}=hang")
            stood_still.append(await _one_kill(rig, client, f"{workers}-{number}"))
            _tell(f"  kill {number + 1} at {failpoint}: " + ", ".join(f"{s:.2f}" for s in stood_still[-1]))
        await client.close()
    return stood_still


async def _one_kill(rig: Rig, client: Client, name: str) -> list[float]:
    job_ids = [await client.submit(f"Request {n}", f"takeover-{name}-{n}") for n in range(JOBS)]
    in_hand = await _in_hand(rig, job_ids)
    killed_at = await rig.value("SELECT clock_timestamp()")
    await rig.stack.kill(VICTIM)
    moved_at = await _moved(rig, in_hand, killed_at)
    await _eventually(lambda: _all_over(rig, job_ids), "the jobs to succeed")
    await rig.all_ready()
    return sorted((moved_at[job_id] - killed_at).total_seconds() for job_id in in_hand)


async def _in_hand(rig: Rig, job_ids: list[str]) -> list[str]:
    found: list[str] = []

    async def look() -> bool:
        rows = await rig.ledger.database.pool.fetch(_IN_HAND, job_ids, str(rig.pid(VICTIM)))
        found[:] = [row["id"] for row in rows]
        return bool(found)

    await _eventually(look, "a job in the victim's hand")
    await asyncio.sleep(GATHERING_SECONDS)
    await look()
    return found


async def _moved(rig: Rig, job_ids: list[str], since: datetime) -> dict[str, datetime]:
    moved_at: dict[str, datetime] = {}

    async def look() -> bool:
        for row in await rig.ledger.database.pool.fetch(_MOVED, job_ids, since):
            moved_at.setdefault(row["id"], row["updated_at"])
        return len(moved_at) == len(job_ids)

    await _eventually(look, "all of them to move")
    return moved_at


async def _all_over(rig: Rig, job_ids: list[str]) -> bool:
    states = [await rig.ledger.jobs.read("dev", job_id) for job_id in job_ids]
    return all(job is not None and job.state is JobState.SUCCEEDED for job in states)


async def _eventually(look: Callable[[], Awaitable[bool]], what: str) -> None:
    await until(look, what, 60, every_seconds=0.01)


def _line(what: str, stood_still: list[list[float]]) -> str:
    seconds = [second for kill in stood_still for second in kill]
    late = sum(second >= FALLBACK_SECONDS for second in seconds)
    return (
        f"{what}: {len(stood_still)} kills, {len(seconds)} jobs in hand;"
        f" median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s;"
        f" {late} waited for the heartbeat timeout"
    )


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(kills: int) -> None:
    """Both measurements, one stack after the other."""
    for workers, what in ((2, "one other worker left"), (1, "none left, restarted by the supervisor")):
        with tempfile.TemporaryDirectory(prefix="takeover-") as home:
            _tell(_line(what, await measured(Path(home), workers=workers, kills=kills)))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS))
    sys.stdout.flush()
    os._exit(0)  # the Temporal client may crash the interpreter at its end (sdk-python 300)
