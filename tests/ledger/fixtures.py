"""One migrated database for a whole folder of tests, emptied before each: a copy each costs ten times as much."""

from collections.abc import AsyncIterator

import pytest

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.conftest import fresh_database
from tests.ledger.scene import Scene

# As a replica no foreign key is looked at, so the order does not matter.
_EMPTY_ALL = """
DO $$
DECLARE name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations'
    LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
END $$
"""


@pytest.fixture(scope="package")
async def folder_ledger(postgres: EmbeddedPostgres) -> AsyncIterator[Ledger]:
    """The ledger that the folder's tests share."""
    async with fresh_database(postgres) as url:
        opened = await Ledger.open(url, size=10, application_name="tests")
        yield opened
        await opened.close()


@pytest.fixture
async def ledger(folder_ledger: Ledger) -> Ledger:
    """The same ledger, with nothing in it."""
    await folder_ledger.database.pool.execute(_EMPTY_ALL)
    return folder_ledger


@pytest.fixture
async def scene(ledger: Ledger) -> Scene:
    """A tenant in the ledger."""
    return await Scene.set_up(ledger)
