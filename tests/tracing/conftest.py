"""A ledger, the API over it, and a world whose worker and relay tell of spans: all in the test's own process."""

from collections.abc import AsyncIterator, Iterator

import pytest
from fastapi import FastAPI
from temporalio.client import Client

from agentjobs.ledger.ledger import Ledger
from agentjobs.temporal import tracing_interceptors
from tests.alerts.conftest import receiver
from tests.api.front import Front, new_app
from tests.ledger.fixtures import folder_ledger, ledger, scene
from tests.tracing.told import Told, telling
from tests.world import World

__all__ = ["folder_ledger", "ledger", "receiver", "scene"]


@pytest.fixture
def told() -> Iterator[Told]:
    """What this process tells while the test runs."""
    with telling() as told:
        yield told


@pytest.fixture
async def traced_world(ledger: Ledger, temporal: Client, told: Told) -> World:
    """A tenant with its own task queue; worker and relay are started by the test."""
    assert told.spans == []
    config = temporal.config()
    config["interceptors"] = tracing_interceptors()
    return await World.made(ledger, Client(**config))


@pytest.fixture(scope="package")
async def app(folder_ledger: Ledger) -> FastAPI:
    """One application for all: it keeps no state but the callers that it knows."""
    return new_app(folder_ledger)


@pytest.fixture
async def front(app: FastAPI, ledger: Ledger, told: Told) -> AsyncIterator[Front]:
    """The API, switched on, with the callers of tests/api/front.py."""
    assert told.spans == []
    opened = Front(app, ledger)
    await opened.populate()
    yield opened
    await opened.close()
