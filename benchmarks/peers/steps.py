"""The steps of a job as the peers carry them out: with blocking calls, and on a loop."""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import os
from functools import cache
from typing import Any

from benchmarks.peers.model import called, called_and_waited

OPEN_TICKET = "INSERT INTO bench_tickets (key) VALUES (%s) ON CONFLICT DO NOTHING"
CONNECTIONS = 10


def plan(job_id: str) -> None:
    """Nothing to do."""


def call_model(job_id: str, step: int, seconds: float) -> None:
    """One paid call; of zero seconds, none."""
    if seconds:
        called_and_waited(job_id, step, seconds)


async def call_model_async(job_id: str, step: int, seconds: float) -> None:
    """The same on a loop."""
    if seconds:
        await called(job_id, step, seconds)


def open_ticket(job_id: str) -> None:
    """Once, by its key."""
    with _pool().connection() as connection:
        connection.execute(OPEN_TICKET, (job_id,))


def whole(job_id: str, count: int, seconds: float) -> None:
    """The job as one task: what is lost in the middle begins anew."""
    plan(job_id)
    for step in range(count):
        call_model(job_id, step, seconds)
    open_ticket(job_id)


async def open_ticket_async(job_id: str) -> None:
    """The same on a loop."""
    pool = _async_pool()
    await pool.open()
    async with pool.connection() as connection:
        await connection.execute(OPEN_TICKET, (job_id,))


# At the first use: after a fork, where there is one.
@cache
def _pool() -> Any:
    from psycopg_pool import ConnectionPool

    return ConnectionPool(os.environ["BENCH_DATABASE_URL"], min_size=1, max_size=CONNECTIONS)


@cache
def _async_pool() -> Any:
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool(os.environ["BENCH_DATABASE_URL"], min_size=1, max_size=CONNECTIONS, open=False)
