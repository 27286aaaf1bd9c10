"""Procrastinate on PostgreSQL: a job is one task.

procrastinate.readthedocs.io: Quickstart, Launch a worker (concurrency), Retry stalled jobs (a periodic task).
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.peers import steps
from benchmarks.peers.looking import until_true
from benchmarks.peers.system import Job

IS_TUNED = os.environ["BENCH_PROCRASTINATE"] == "tuned"
LOOK_FOR_STALLED = "* * * * * */1" if IS_TUNED else "*/10 * * * *"
"""The documentation's own example looks every ten minutes; tuned, every second."""

HEARTBEATS: dict[str, Any] = {"update_heartbeat_interval": 1, "stalled_worker_timeout": 3} if IS_TUNED else {}
STALLED_AFTER: dict[str, Any] = {"seconds_since_heartbeat": 3} if IS_TUNED else {}
LOOK_SECONDS = 0.005
AT_ONCE = 100

app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_DATABASE_URL"]))


@app.task(name="whole", queue=os.environ["BENCH_QUEUE"])
async def whole(job_id: str, count: int, seconds: float) -> None:
    """All of it: what is lost in the middle begins anew."""
    steps.plan(job_id)
    for step in range(count):
        await steps.call_model_async(job_id, step, seconds)
    await steps.open_ticket_async(job_id)


@app.periodic(cron=LOOK_FOR_STALLED)
@app.task(name="retry_stalled", queue=os.environ["BENCH_QUEUE"], queueing_lock="stalled", pass_context=True)
async def retry_stalled(context: Any, timestamp: int) -> None:  # noqa: ARG001 - what a periodic task is given
    """As its documentation shows."""
    for job in await app.job_manager.get_stalled_jobs(**STALLED_AFTER):
        await app.job_manager.retry_job(job)


async def work() -> None:
    """The worker."""
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        print("ready", flush=True)  # noqa: T201 - the word that the benchmark waits for
        await app.run_worker_async(concurrency=int(os.environ.get("BENCH_AT_ONCE", AT_ONCE)), **HEARTBEATS)


class Client:
    """Defers jobs, and looks at their status."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    async def submit(self, job: Job) -> None:
        """It is in PostgreSQL."""
        self._ids[job.id] = await whole.defer_async(job_id=job.id, count=job.steps, seconds=job.seconds)

    async def is_over(self, job_id: str) -> bool:
        """By its status."""
        status = (await app.job_manager.get_job_status_async(self._ids[job_id])).value
        if status in {"failed", "cancelled", "aborted"}:
            raise RuntimeError(f"{job_id}: {status}")
        return bool(status == "succeeded")

    async def until_over(self, job_id: str) -> None:
        """It has to be asked for."""
        await until_true(self.is_over, job_id, LOOK_SECONDS)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Over a pool."""
    async with app.open_async():
        yield Client()


if __name__ == "__main__":
    asyncio.run(work())
