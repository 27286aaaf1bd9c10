"""Bare Temporal: one workflow, three regular activities. The floor: no ledger, no checks.

python -m benchmarks.peers.on_temporal
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
from temporalio import activity
from temporalio.client import Client as TemporalClient
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from benchmarks.peers.model import called
from benchmarks.peers.system import Job
from benchmarks.peers.temporal_workflow import CALL, TICKET, BareJob, Options, Wanted

OPEN_TICKET = "INSERT INTO bench_tickets (key) VALUES ($1) ON CONFLICT DO NOTHING"
ACTIVITIES = 100
"""At once, as our worker has it."""


@activity.defn
async def plan(job_id: str) -> None:
    """Nothing to do."""


@activity.defn(name=CALL)
async def call_model(wanted: Wanted, step: int) -> None:
    """One paid call; of zero seconds, none."""
    if wanted.seconds:
        async with beating():
            await called(wanted.job_id, step, wanted.seconds)


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Heartbeats, where a timeout asks for them."""
    timeout = activity.info().heartbeat_timeout

    async def beat() -> None:
        while timeout is not None:
            activity.heartbeat()
            await asyncio.sleep(timeout.total_seconds() / 3)

    beat_task = asyncio.create_task(beat())
    try:
        yield
    finally:
        beat_task.cancel()


@dataclass
class Tickets:
    """The desk; without a pool, tickets are no more than talked about."""

    pool: asyncpg.Pool | None

    @activity.defn(name=TICKET)
    async def open_ticket(self, job_id: str) -> None:
        """Once."""
        if self.pool is not None:
            await self.pool.execute(OPEN_TICKET, job_id)


async def work() -> None:
    """The worker."""
    client = await TemporalClient.connect(os.environ["TEMPORAL_ADDRESS"])
    has_tickets = os.environ.get("BENCH_TICKETS") == "1"
    pool = await asyncpg.create_pool(os.environ["BENCH_DATABASE_URL"], max_size=10) if has_tickets else None
    is_guarded = os.environ.get("BENCH_SANDBOX") != "off"
    worker = Worker(
        client,
        task_queue=os.environ["BENCH_QUEUE"],
        workflows=[BareJob],
        activities=[plan, call_model, Tickets(pool).open_ticket],
        workflow_runner=SandboxedWorkflowRunner() if is_guarded else UnsandboxedWorkflowRunner(),
        max_concurrent_activities=int(os.environ.get("BENCH_AT_ONCE", ACTIVITIES)),
    )
    async with worker:
        print("ready", flush=True)  # noqa: T201 - the word that the benchmark waits for
        await asyncio.Event().wait()


class Client:
    """Starts workflows."""

    def __init__(self, temporal: TemporalClient) -> None:
        self._temporal = temporal
        self._activities = int(os.environ.get("BENCH_ACTIVITIES", 3))
        self._options = Options.named(os.environ.get("BENCH_TIMEOUTS", "plain"))

    async def submit(self, job: Job) -> None:
        """Acknowledged by the server."""
        steps = job.steps if job.seconds else self._activities - 2
        wanted = Wanted(job.id, steps, job.seconds, self._options)
        task_timeout = self._options.task_timeout
        await self._temporal.start_workflow(
            BareJob.run, wanted, id=job.id, task_queue=os.environ["BENCH_QUEUE"], task_timeout=task_timeout
        )

    async def is_over(self, job_id: str) -> bool:
        """By a look at the workflow."""
        status = (await self._handle(job_id).describe()).status
        if status not in {WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED}:
            raise RuntimeError(f"{job_id}: {status}")
        return status == WorkflowExecutionStatus.COMPLETED

    async def until_over(self, job_id: str) -> None:
        """The long poll for its result."""
        await self._handle(job_id).result()

    def _handle(self, job_id: str) -> WorkflowHandle[BareJob, None]:
        return self._temporal.get_workflow_handle_for(BareJob.run, job_id)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Over one connection."""
    yield Client(await TemporalClient.connect(os.environ["TEMPORAL_ADDRESS"]))


if __name__ == "__main__":
    asyncio.run(work())
