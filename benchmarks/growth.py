"""What a job's statements cost PostgreSQL in a ledger that has seen 10 to 100,000 jobs (a million rows) before.

Measured is the CPU time of the session that runs them: neither the client nor other processes count (Linux only).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.postgres import EmbeddedPostgres
from benchmarks.figures import Figure, as_json, as_table
from tests.ledger.crowd import fill
from tests.ledger.scene import MODEL_CALL, Scene
from tests.ports import free_port

SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
STEPS: Final = 5
JOBS: Final = 50
WARM_UP: Final = 10
"""Jobs before the first that counts: the plans are made, and the tables read into memory."""


class Course:
    """Whole jobs, one after the other, and what each of their statements took."""

    def __init__(self, scene: Scene, pid: int) -> None:
        self._scene = scene
        self._clock = Path(f"/proc/{pid}/schedstat")
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)

    async def run(self) -> None:
        """One job, from its submission to its end."""
        ledger = self._scene.ledger
        with self._timed("accept"):
            job = await self._scene.accept()
        with self._timed("claim and mark"):
            await self._claim()
        for number in range(STEPS):
            await self._step(job.id, f"step-{number}.model")
        with self._timed("finish"):
            await ledger.outcomes.finish(job.id, JobState.SUCCEEDED, generation=0)

    async def _claim(self) -> None:
        outbox = self._scene.ledger.outbox
        async with self._scene.ledger.database.transaction() as connection:
            rows = await outbox.claim_starts(connection, 32)
            await outbox.mark_started(connection, [row.id for row in rows])

    async def _step(self, job_id: str, step: str) -> None:
        intent = self._scene.intent(job_id, step, **MODEL_CALL)
        with self._timed("begin"):
            attempt_id = (await self._scene.ledger.effects.begin(intent, with_done=True)).attempt_id
        if attempt_id is None:
            raise RuntimeError("the step was done before")
        with self._timed("complete"):
            await self._scene.ledger.effects.complete(intent, attempt_id, {"text": "It is on fire."})

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        before = self._nanoseconds()
        yield
        self.milliseconds[what].append((self._nanoseconds() - before) / 1e6)

    def _nanoseconds(self) -> int:
        return int(self._clock.read_text().split()[0])


async def _measured(postgres: EmbeddedPostgres, size: int, jobs: int) -> list[Figure]:
    database = f"after_{size}"
    await postgres.create_database(database)
    await migrate(postgres.dsn(database))
    ledger = await Ledger.open(postgres.dsn(database), size=1, application_name="growth")
    try:
        await fill(ledger, size)
        # What still waits would be claimed, and measured, with the first job.
        await ledger.database.pool.execute("TRUNCATE outbox")
        scene = await Scene.set_up(ledger)
        pid = await ledger.database.pool.fetchval("SELECT pg_backend_pid()")
        warm_up, course = Course(scene, pid), Course(scene, pid)
        for _ in range(WARM_UP):
            await warm_up.run()
        for _ in range(jobs):
            await course.run()
    finally:
        await ledger.close()
    return [
        Figure.of(f"{what}, after {size:,} jobs", "ms", values) for what, values in course.milliseconds.items()
    ]


async def _main(sizes: list[int], jobs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="agentjobs-benchmark-") as home:
        postgres = EmbeddedPostgres(Path(home), free_port())
        await postgres.start()
        try:
            figures = [figure for size in sizes for figure in await _measured(postgres, size, jobs)]
        finally:
            await postgres.stop()
            postgres.remove()
    figures.sort(key=lambda figure: figure.what.split(",")[0])
    sys.stdout.write(f"{as_table(figures)}\n\n{as_json(figures)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many jobs there were before")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many are measured")
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_main(given.sizes, given.jobs))
