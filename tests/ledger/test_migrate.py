"""Migrations: each once, in order, whole or not at all, whoever starts at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from agentjobs.ledger import migrate as migrating
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate, migrations
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.databases import empty_database
from tests.world import eventually

_WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"""
ALL = [name for name, _ in migrations()]


@pytest.fixture
async def empty(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database with nothing in it."""
    async with empty_database(postgres) as dsn:
        yield dsn


async def test_processes_that_start_at_the_same_moment_migrate_once(empty: str) -> None:
    applied = await asyncio.gather(*(migrate(empty) for _ in range(4)))

    assert sorted(applied) == [[], [], [], ALL]
    assert await _fetched(empty, "SELECT name FROM schema_migrations ORDER BY name") == ALL


async def test_a_second_run_applies_nothing(empty: str) -> None:
    first = await migrate(empty)

    second = await migrate(empty)

    assert (first, second) == (ALL, [])


async def test_a_migration_that_fails_leaves_nothing_and_can_be_run_again(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [*migrations(), ("9999_broken.sql", "CREATE TABLE half (id text); SELECT 1 / 0")]
    monkeypatch.setattr(migrating, "migrations", lambda: broken)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(empty)

    assert await _fetched(empty, "SELECT name FROM schema_migrations ORDER BY name") == ALL
    assert await _fetched(empty, "SELECT to_regclass('half')") == [None]

    monkeypatch.setattr(migrating, "migrations", lambda: [*broken[:-1], ("9999_broken.sql", "SELECT 1")])
    assert await migrate(empty) == ["9999_broken.sql"]


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration more than there are, which needs two tables for itself; and little patience."""
    more = ("9999_changed.sql", "ALTER TABLE jobs ADD COLUMN more text; ALTER TABLE effects ADD COLUMN more text")
    monkeypatch.setattr(migrating, "migrations", lambda: [*migrations(), more])
    monkeypatch.setattr(migrating, "LOCK_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(migrating, "PAUSE_SECONDS", 0.05)


async def test_a_table_in_use_is_waited_for_and_nobody_else_waits_for_long(
    database_url: str, changed: None
) -> None:
    reader, other = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    async with reader.transaction():
        await reader.fetch("SELECT FROM jobs")
        migrated = asyncio.create_task(migrate(database_url))
        await _until_waits(other)
        await asyncio.wait_for(other.fetch("SELECT FROM jobs"), 5)
        assert not migrated.done()

    applied = await migrated

    assert applied == ["9999_changed.sql"]
    await asyncio.gather(reader.close(), other.close())


async def test_a_deadlock_with_jobs_at_work_is_tried_again(
    database_url: str, changed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    # Of two in a deadlock the one ends that looks first: let it be the migration, without its own time limit.
    await worker.execute("SET deadlock_timeout = '20s'")
    monkeypatch.setattr(migrating, "LOCK_WAIT_SECONDS", 60.0)
    async with worker.transaction():
        await worker.fetch("SELECT FROM effects")
        migrated = asyncio.create_task(migrate(database_url))
        await _until_waits(other)
        await worker.fetch("SELECT FROM jobs")

    applied = await migrated

    assert applied == ["9999_changed.sql"]
    await asyncio.gather(worker.close(), other.close())


async def test_a_table_that_is_never_free_fails_the_migration(
    database_url: str, changed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "ATTEMPTS", 2)
    reader = await asyncpg.connect(database_url)
    async with reader.transaction():
        await reader.fetch("SELECT FROM jobs")

        with pytest.raises(asyncpg.LockNotAvailableError):
            await migrate(database_url)

    await reader.close()


async def test_a_database_that_was_just_migrated_takes_a_job(empty: str) -> None:
    await migrate(empty)
    ledger = await Ledger.open(empty, size=1, application_name="tests")

    created = await ledger.identity.create_tenant("acme")

    await ledger.close()
    assert created


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [int(name.split("_", 1)[0]) for name in ALL] == list(range(1, len(ALL) + 1))


async def _until_waits(session: asyncpg.Connection[asyncpg.Record]) -> None:
    async def waits() -> bool:
        return bool(await session.fetchval(_WAITING))

    await eventually(waits, "the migration to wait for a table")


async def _fetched(dsn: str, query: str) -> list[object]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()
