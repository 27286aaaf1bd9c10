"""RQ: a job is one function call, in a process that the worker forks for it.

python-rq.org/docs: Jobs, Workers (worker pool), Exceptions & Retries.
"""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis import Redis
from rq import Queue, Retry
from rq.job import Job as QueuedJob

from benchmarks.peers.looking import until_true
from benchmarks.peers.system import Job

RESULT_SECONDS = 3_600
JOB_SECONDS = 600
LOOK_SECONDS = 0.005


class Client:
    """Puts jobs into the queue, and looks at their status."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._queue = Queue(os.environ["BENCH_QUEUE"], connection=redis)
        self._jobs: dict[str, QueuedJob] = {}

    async def submit(self, job: Job) -> None:
        """It is in Redis."""
        self._jobs[job.id] = self._queue.enqueue(
            "benchmarks.peers.steps.whole",
            *(job.id, job.steps, job.seconds),
            job_id=job.id,
            job_timeout=JOB_SECONDS,
            result_ttl=RESULT_SECONDS,
            retry=Retry(max=10),
        )

    async def is_over(self, job_id: str) -> bool:
        """By its status."""
        status = self._jobs[job_id].get_status(refresh=True)
        if status in {"failed", "stopped", "canceled"}:
            raise RuntimeError(f"{job_id}: {status}")
        return bool(status == "finished")

    async def until_over(self, job_id: str) -> None:
        """It has to be asked for."""
        await until_true(self.is_over, job_id, LOOK_SECONDS)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Over one connection."""
    yield Client(Redis.from_url(os.environ["BENCH_REDIS_URL"]))
