"""Forward-only migrations: numbered files, each once, in order, under an advisory lock (docs/adr/0003).

Two processes may start at the same moment: the second waits for the first, then finds nothing to do. Jobs may be
under way meanwhile: a migration that meets them at a table, or in a deadlock, is rolled back and tried again.
"""

from __future__ import annotations

import asyncio
from importlib import resources

import asyncpg
import structlog

log = structlog.get_logger()

_LOCK = 0x61676A6F  # "agjo": any fixed number, the same in every version

LOCK_WAIT_SECONDS = 2.0
"""Behind a migration that waits for a table everybody waits who wants that table: so it gives up soon."""

ATTEMPTS = 60
PAUSE_SECONDS = 0.5
"""Meanwhile the others go on. All attempts together take two minutes and a half at most."""


def migrations() -> list[tuple[str, str]]:
    """(name, SQL) of every migration, in order."""
    folder = resources.files("agentjobs.ledger") / "migrations"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda f: f.name)
    return [(entry.name, entry.read_text("utf-8")) for entry in files]


async def migrate(dsn: str) -> list[str]:
    """Bring the database to this version's schema and return the names of the migrations just applied."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        return await _apply_missing(connection)
    finally:
        await connection.close()  # ends the session, and with it the lock


async def _apply_missing(connection: asyncpg.Connection[asyncpg.Record]) -> list[str]:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(name text CONSTRAINT schema_migrations_pkey PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    applied = {row["name"] for row in await connection.fetch("SELECT name FROM schema_migrations")}
    missing = [(name, sql) for name, sql in migrations() if name not in applied]
    for name, sql in missing:
        await _apply(connection, name, sql)
        log.info("migration_applied", migration=name)
    return [name for name, _ in missing]


async def _apply(connection: asyncpg.Connection[asyncpg.Record], name: str, sql: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {round(LOCK_WAIT_SECONDS * 1000)}")
                await connection.execute(sql)
                await connection.execute("INSERT INTO schema_migrations (name) VALUES ($1)", name)
        except (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError):
            if attempt == ATTEMPTS:
                raise
            log.warning("migration_waits", migration=name, attempt=attempt)
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return
