"""DBOS on PostgreSQL: a workflow of steps, taken from a queue.

docs.dbos.dev/python: Workflows, Steps, Queues (polling interval), DBOS Client, Workflow Recovery (same executor).
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.peers import steps
from benchmarks.peers.system import Job

DATABASE = os.environ["BENCH_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
POLLING_SECONDS = float(os.environ["BENCH_DBOS_POLLING"])


@DBOS.step()
async def plan(job_id: str) -> None:
    """First."""
    steps.plan(job_id)


@DBOS.step()
async def call_model(job_id: str, step: int, seconds: float) -> None:
    """One call."""
    await steps.call_model_async(job_id, step, seconds)


@DBOS.step()
async def open_ticket(job_id: str) -> None:
    """Last."""
    await steps.open_ticket_async(job_id)


@DBOS.workflow(name="whole")
async def whole(job_id: str, count: int, seconds: float) -> None:
    """What is lost in the middle goes on after the last finished step."""
    await plan(job_id)
    for step in range(count):
        await call_model(job_id, step, seconds)
    await open_ticket(job_id)


async def work() -> None:
    """The worker."""
    config: DBOSConfig = {"name": "bench", "system_database_url": DATABASE, "log_level": "WARNING"}
    DBOS(config=config)
    DBOS.launch()
    await DBOS.register_queue_async(os.environ["BENCH_QUEUE"], polling_interval_sec=POLLING_SECONDS)
    print("ready", flush=True)  # noqa: T201 - the word that the benchmark waits for
    await asyncio.Event().wait()


class Client:
    """Puts workflows into the queue, and looks at their status."""

    def __init__(self, dbos: DBOSClient) -> None:
        self._dbos = dbos

    async def submit(self, job: Job) -> None:
        """It is in PostgreSQL."""
        options: Any = {"queue_name": os.environ["BENCH_QUEUE"], "workflow_name": "whole", "workflow_id": job.id}
        await self._dbos.enqueue_async(options, job.id, job.steps, job.seconds)

    async def is_over(self, job_id: str) -> bool:
        """By its status."""
        handle = await self._dbos.retrieve_workflow_async(job_id)
        status = (await handle.get_status()).status
        if status in {"ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"}:
            raise RuntimeError(f"{job_id}: {status}")
        return bool(status == "SUCCESS")

    async def until_over(self, job_id: str) -> None:
        """Its handle polls."""
        handle = await self._dbos.retrieve_workflow_async(job_id)
        await handle.get_result(polling_interval_sec=POLLING_SECONDS)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Over the system database."""
    yield Client(DBOSClient(system_database_url=DATABASE))


if __name__ == "__main__":
    asyncio.run(work())
