"""The API over a real ledger."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.front import Front, new_app
from tests.ledger.fixtures import folder_ledger, ledger
from tests.ledger.scene import Scene

__all__ = ["folder_ledger", "ledger"]


@pytest.fixture(scope="package")
async def app(folder_ledger: Ledger) -> FastAPI:
    """One application for all: it keeps no state but the callers that it knows."""
    return new_app(folder_ledger)


@pytest.fixture
async def front(app: FastAPI, ledger: Ledger) -> AsyncIterator[Front]:
    """The API, with the callers of front.CALLERS."""
    opened = Front(app, ledger)
    await opened.populate()
    yield opened
    await opened.close()


@pytest.fixture
async def ann(front: Front) -> AsyncClient:
    """A user of acme who submits."""
    return front.of("ann")


@pytest.fixture
async def rita(front: Front) -> AsyncClient:
    """A reviewer of acme."""
    return front.of("rita")


@pytest.fixture
async def adam(front: Front) -> AsyncClient:
    """The admin of acme, whose key was the installation's first."""
    return front.of("adam")


@pytest.fixture
def key(front: Front) -> str:
    """Ann's."""
    return front.keys["ann"]


@pytest.fixture
def scene(front: Front) -> Scene:
    """Jobs of acme, made without HTTP."""
    return front.scene


@pytest.fixture
async def dsn(ledger: Ledger, postgres: EmbeddedPostgres) -> str:
    """The address of the database, for a process or a connection of the test's own."""
    return postgres.dsn(await ledger.database.pool.fetchval("SELECT current_database()"))
