"""The real parts, once a session: PostgreSQL and Temporal from their wheels; and a fresh database per test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count

import asyncpg
import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ports import free_port
from tests.servers import real_temporal, skipping_real_temporal, time_skipping_server
from tests.spreading import longest_first
from tests.world import World

_TEMPLATE = "agentjobs_template"
_numbers = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In which order they run."""
    longest_first(items)


@pytest.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    """A PostgreSQL server for the whole session."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), free_port(), durable=False)
    await server.start(_TEMPLATE)
    await migrate(server.dsn(_TEMPLATE))
    yield server
    await server.stop()
    server.remove()


@asynccontextmanager
async def fresh_database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database of its own, copied from the migrated template; gone afterwards."""
    name = f"test_{next(_numbers)}"
    session = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await session.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        yield postgres.dsn(name)
        await session.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await session.close()


@pytest.fixture
async def database_url(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """The address of this test's own database."""
    async with fresh_database(postgres) as url:
        yield url


@pytest.fixture
async def ledger(database_url: str) -> AsyncIterator[Ledger]:
    """The ledger over this test's own database."""
    opened = await Ledger.open(database_url, size=10, application_name="tests")
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A real Temporal server with its own time skipping switched on (and not used unless asked for)."""
    async with real_temporal() as environment:
        yield environment.client


@pytest.fixture(scope="session")
async def skipping_server() -> AsyncIterator[WorkflowEnvironment]:
    """The test server: one clock for all workflows, moved forward when it is told to."""
    async with time_skipping_server() as environment:
        yield environment


@pytest.fixture(scope="session")
async def skipping_real_server() -> AsyncIterator[WorkflowEnvironment]:
    """The real server's own time skipping: a clock for each workflow, ahead whenever it only waits."""
    async with skipping_real_temporal() as environment:
        yield environment


@pytest.fixture
async def world(ledger: Ledger, temporal: Client) -> World:
    """A tenant with its own task queue on the real server: workers and relay are started by the test."""
    return await World.made(ledger, temporal)


@pytest.fixture
async def skipping_world(ledger: Ledger, skipping_server: WorkflowEnvironment) -> World:
    """A world on the test server. Its clock runs away from the ledger's: give jobs long deadlines."""
    world = await World.made(ledger, skipping_server.client)
    world.between = lambda: skipping_server.sleep(timedelta(minutes=5))
    return world


@pytest.fixture
async def skipping_real_world(ledger: Ledger, skipping_real_server: WorkflowEnvironment) -> World:
    """A world on the real server with time skipping: each job starts at the true time."""
    return await World.made(ledger, skipping_real_server.client)
