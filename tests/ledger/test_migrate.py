"""Migrations: each once, in order, whole or not at all, whoever starts at the same moment."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from agentjobs.ledger import migrate as migrating
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate, migrations
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.databases import empty_database

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


async def test_a_database_that_was_just_migrated_takes_a_job(empty: str) -> None:
    await migrate(empty)
    ledger = await Ledger.open(empty, size=1, application_name="tests")

    created = await ledger.identity.create_tenant("acme")

    await ledger.close()
    assert created


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [int(name.split("_", 1)[0]) for name in ALL] == list(range(1, len(ALL) + 1))


async def _fetched(dsn: str, query: str) -> list[object]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()
