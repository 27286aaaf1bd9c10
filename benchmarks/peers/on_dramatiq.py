"""Dramatiq on Redis: a job is one message, acknowledged when it is done.

dramatiq.io: Guide (results, retries), Advanced Topics (Redis broker: heartbeats), API reference (RedisBroker).
"""
# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from dramatiq.results.errors import ResultMissing

from benchmarks.peers import steps
from benchmarks.peers.system import Job

URL = os.environ["BENCH_REDIS_URL"]
TUNED: dict[str, Any] = {"heartbeat_timeout": 5_000, "maintenance_chance": 100_000}
"""A dead worker's messages come back after five seconds, and one command in ten looks for them."""

broker = RedisBroker(url=URL, **(TUNED if os.environ["BENCH_DRAMATIQ"] == "tuned" else {}))
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


whole = dramatiq.actor(steps.whole, queue_name=os.environ["BENCH_QUEUE"], store_results=True)


class Client:
    """Sends messages, and looks for their results."""

    def __init__(self) -> None:
        self._messages: dict[str, Any] = {}

    async def submit(self, job: Job) -> None:
        """It is in Redis."""
        self._messages[job.id] = whole.send(job.id, job.steps, job.seconds)

    async def is_over(self, job_id: str) -> bool:
        """By its result."""
        try:
            self._messages[job_id].get_result()
        except ResultMissing:
            return False
        return True

    async def until_over(self, job_id: str) -> None:
        """The backend tells when it is there."""
        self._messages[job_id].get_result(block=True, timeout=60_000)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Of this broker."""
    yield Client()
