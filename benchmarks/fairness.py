"""The whole stack with thousands of jobs of one tenant waiting: how soon does one of another begin? Table, JSON.

python -m benchmarks.fairness [--waiting N] [--of-other N]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import structlog

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack
from benchmarks.figures import Figure, as_json, as_table
from tests.chaos.rig import until
from tests.e2e.conftest import options_for, started
from tests.e2e.model_rig import OVER, client_of

WAITING: Final = 2_000
OF_OTHER: Final = 5
AT_ONCE: Final = 16
UNDER_WAY: Final = 100
"""So many of the many have ended before the first of the other tenant comes: everything is warm, and full."""

PATIENCE_SECONDS: Final = 900
NO_QUOTAS: Final = {f"AGENTJOBS_QUOTA_{name}": "0" for name in ("IN_FLIGHT", "PER_MINUTE", "QUEUE_LENGTH")}

MOMENTS: Final = ("given to Temporal", "its first step began", "it is over")
_TIMES: Final = """
SELECT extract(epoch FROM dispatched_at - created_at) AS given,
       extract(epoch FROM finalized_at - created_at) AS ended,
       (SELECT extract(epoch FROM min(started_at) - jobs.created_at) FROM attempts WHERE job_id = jobs.id) AS began
  FROM jobs WHERE id = $1 AND state = 'succeeded'
"""


@dataclass(frozen=True)
class Rig:
    """The stack, and the API as a user of each tenant sees it."""

    stack: Stack
    ledger: Ledger
    many: httpx.AsyncClient
    other: httpx.AsyncClient

    async def value(self, statement: str, *values: object) -> Any:
        """One value from the ledger's database."""
        return await self.ledger.database.pool.fetchval(statement, *values)

    async def ended(self) -> int:
        """How many of the many have ended."""
        return int(await self.value("SELECT count(*) FROM jobs WHERE tenant = 'dev' AND finalized_at IS NOT NULL"))


@asynccontextmanager
async def running_rig(home: Path) -> AsyncIterator[Rig]:
    """A stack with two workers for the length of the block."""
    async with started(options_for(home, 2, **NO_QUOTAS)) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="benchmark")
        async with client_of(stack.info.api, stack.info.admin_key) as admin:
            made = await admin.post("/v1/keys", json={"tenant": "other", "user": "bea", "roles": ["submit"]})
        await ledger.identity.add_grant("other", "bea", "tickets:create", granted_by="benchmark")
        async with (
            client_of(stack.info.api, stack.info.api_key) as many,
            client_of(stack.info.api, made.json()["key"]) as other,
        ):
            yield Rig(stack, ledger, many, other)
        await ledger.close()
    EmbeddedPostgres(home, 1).remove()


async def submitted(client: httpx.AsyncClient, number: int) -> list[str]:
    """So many jobs; their ids."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(place: int) -> str:
        async with gate:
            answer = await client.post("/v1/jobs", json={"input": {"text": f"Printer {place} is on fire"}})
            answer.raise_for_status()
            job_id: str = answer.json()["id"]
            return job_id

    return list(await asyncio.gather(*(one(place) for place in range(number))))


async def measured(rig: Rig, waiting: int, of_other: int) -> list[Figure]:
    """The relay is held back until all of the many wait; then jobs of the other come one after the other."""
    await rig.stack.stop_child("relay")
    await submitted(rig.many, waiting)
    await rig.stack.start_child("relay")
    await until(lambda: _has_ended(rig, UNDER_WAY), "the many to be under way", PATIENCE_SECONDS, 0.2)
    began, ended_before = time.monotonic(), await rig.ended()
    times = [await _one_of_other(rig) for _ in range(of_other)]
    rate = (await rig.ended() - ended_before) / (time.monotonic() - began)
    left = (waiting - ended_before) / rate
    return [
        Figure.of("of the many: waiting when the other came", "jobs", [waiting - ended_before]),
        Figure.of("of the many: ended a second meanwhile", "jobs/s", [rate]),
        Figure.of("of the many: until the last has ended, at this rate", "s", [left]),
        *(
            Figure.of(f"of the other: accepted until {what}", "s", [one[what] for one in times])
            for what in MOMENTS
        ),
    ]


async def _has_ended(rig: Rig, number: int) -> bool:
    return await rig.ended() >= number


async def _one_of_other(rig: Rig) -> dict[str, float]:
    (job_id,) = await submitted(rig.other, 1)

    async def is_over() -> bool:
        return await rig.value("SELECT state FROM jobs WHERE id = $1", job_id) in OVER

    await until(is_over, f"job {job_id} of the other to end", PATIENCE_SECONDS)
    (row,) = await rig.ledger.database.pool.fetch(_TIMES, job_id)
    return {what: float(row[column]) for what, column in zip(MOMENTS, ("given", "began", "ended"), strict=True)}


async def _main(waiting: int, of_other: int) -> None:
    with tempfile.TemporaryDirectory(prefix="agentjobs-benchmark-") as home:
        async with running_rig(Path(home) / "stack") as rig:
            figures = await measured(rig, waiting, of_other)
    sys.stdout.write(f"{as_table(figures)}\n\n{as_json(figures)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=WAITING)
    parser.add_argument("--of-other", type=int, default=OF_OTHER)
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_main(given.waiting, given.of_other))
