"""One pool, and the named statements over it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import aiosql
import asyncpg
from asyncpg.pool import PoolConnectionProxy

from agentjobs.domain.classification import Facts, classify
from agentjobs.domain.failures import RETRYABLE, Category, JobError, PermanentError, RetryableError
from agentjobs.ledger.session import Session

# Strings, since asyncpg's classes are generic in its stubs only.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Executor: TypeAlias = "asyncpg.Pool[asyncpg.Record] | Connection"

COMMAND_TIMEOUT_SECONDS = 10.0
"""No statement of ours takes a second; a half-open connection must not hold an activity for minutes."""

CONNECT_TIMEOUT_SECONDS = 5.0

IDLE_TRANSACTION_SECONDS = 15
"""Longer than any RPC that the relay waits for inside its transaction."""


def load_statements() -> Any:
    """The statements of queries/*.sql as coroutine functions (aiosql builds them at run time, so untyped)."""
    return aiosql.from_path(Path(__file__).parent / "queries", "asyncpg", mandatory_parameters=False)


class Database:
    """A pool with its statements. Made by `connect`, closed by its owner."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self.pool = pool
        self.run = load_statements()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection in a transaction; committed when the block ends without an exception."""
        async with self.pool.acquire() as connection, connection.transaction():
            yield connection

    async def close(self) -> None:
        """Close the pool, waiting for connections in use."""
        await self.pool.close()


async def connect(dsn: str, *, size: int, application_name: str, lock_seconds: float = 0) -> Database:
    """Open the pool. Raises OSError or asyncpg.PostgresError when the database cannot be reached.

    lock_seconds: how long a statement may wait for a lock; 0: as long as it may take at all.
    """
    pool = await asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=size,
        init=_prepare_connection,
        connection_class=Session,
        timeout=CONNECT_TIMEOUT_SECONDS,
        command_timeout=COMMAND_TIMEOUT_SECONDS,
        max_cached_statement_lifetime=0,  # as long as the session: our statements are a closed set
        server_settings={
            "application_name": application_name,
            # A frozen process must not keep its row locks: the server ends its transaction.
            "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_SECONDS}s",
            "lock_timeout": f"{round(lock_seconds * 1000)}ms",
            "jit": "off",  # our statements take less time than their compilation would
        },
    )
    return Database(pool)


async def _prepare_connection(connection: Connection) -> None:
    await connection.set_type_codec("jsonb", encoder=_to_json, decoder=json.loads, schema="pg_catalog")


def _to_json(value: object) -> str:
    # jsonb knows neither NaN nor lone surrogates: refuse them here, where the cause is still visible.
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


_BROKEN = asyncpg.PostgresConnectionError | asyncpg.InterfaceError | asyncpg.InternalClientError | OSError
"""A connection that ended. (An InternalClientError is the driver's confusion when that happens within a message.)
"""


def facts_of(error: BaseException) -> Facts:
    """What a database exception tells the classification."""
    if isinstance(error, TimeoutError):
        return Facts(timed_out=True)
    if isinstance(error, _BROKEN):
        return Facts(connection_lost=True)
    if isinstance(error, asyncpg.PostgresError):
        return Facts(sqlstate=error.sqlstate)
    return Facts()


def as_job_error(error: Exception) -> JobError | None:
    """A failure of the ledger itself, or None for any other exception.

    The database's own text may quote values, so only the failure's kind is told.
    """
    facts = facts_of(error)
    if facts == Facts():
        return None
    category = classify(facts)
    message = f"the ledger could not take a statement ({type(error).__name__})"
    return RetryableError(category, message) if category in RETRYABLE else PermanentError(category, message)


def is_cut_off(error: BaseException) -> bool:
    """Whether the session ended before the reply came: what it was told may be done all the same."""
    facts = facts_of(error)
    return facts.connection_lost or (facts.sqlstate or "").startswith("57P")


def is_unavailable(error: BaseException) -> bool:
    """Whether the database, rather than the statement, is at fault: later the same call may work."""
    return classify(facts_of(error)) in {Category.UNAVAILABLE, Category.TIMEOUT}
