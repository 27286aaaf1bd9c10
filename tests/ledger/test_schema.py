"""The documented schema is the one that the migrations make, compared by the catalogue."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.databases import empty_database
from tests.ledger.documented_schema import documented, dumped

CATALOGUE = {
    "columns": """
        SELECT table_name, ordinal_position, column_name, data_type, udt_name, numeric_precision, numeric_scale,
               is_nullable, column_default, is_identity, identity_generation, generation_expression
          FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype, convalidated,
               translate(pg_get_constraintdef(oid), '()', '') -- a chain of ORs is nested anew when it is read
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, tgenabled, pg_get_triggerdef(oid)
          FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2""",
    "functions": """
        SELECT proname, pg_get_functiondef(oid) FROM pg_proc
         WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2""",
    "sequences": "SELECT * FROM information_schema.sequences ORDER BY sequence_name",
    "others": """
        SELECT relname, relkind, relpersistence FROM pg_class
         WHERE relnamespace = 'public'::regnamespace ORDER BY 1, 2""",
}


@pytest.fixture(scope="module")
async def migrated(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A migrated database."""
    async with empty_database(postgres, template="agentjobs_template") as dsn:
        yield dsn


@pytest.fixture(scope="module")
async def loaded(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database made from the documented schema."""
    async with empty_database(postgres) as dsn:
        connection = await asyncpg.connect(dsn)
        # As pg_dump's own scripts begin: a function may name tables that come after it.
        await connection.execute("SET check_function_bodies = off")
        await connection.execute(documented())
        await connection.close()
        yield dsn


@pytest.mark.parametrize("query", CATALOGUE.values(), ids=CATALOGUE)
async def test_a_database_made_from_the_documented_schema_equals_a_migrated_one(
    migrated: str, loaded: str, query: str
) -> None:
    by_migration, by_document = await _fetched(migrated, query), await _fetched(loaded, query)

    assert by_migration == by_document
    assert len(by_migration) > 0


async def test_the_documented_schema_is_what_pg_dump_says_today(migrated: str) -> None:
    assert documented() == dumped(migrated)


async def test_every_constraint_and_index_has_a_name_that_says_its_table(migrated: str) -> None:
    named = await _fetched(
        migrated,
        "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    )

    assert [name for table, name in named if not str(name).startswith(f"{table}_")] == []


async def _fetched(dsn: str, query: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        # A database's own name stands in some views of information_schema.
        return [
            tuple(v for k, v in row.items() if not k.endswith("_catalog")) for row in await connection.fetch(query)
        ]
    finally:
        await connection.close()
