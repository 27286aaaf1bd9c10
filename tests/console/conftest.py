"""The console over a real ledger, in this process."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI

from agentjobs.console.app import mount
from agentjobs.ledger.ledger import Ledger
from tests.api.front import new_app
from tests.console.visitors import Clock, Console
from tests.ledger.fixtures import folder_ledger, ledger

__all__ = ["folder_ledger", "ledger"]


_clock = Clock()


@pytest.fixture(scope="package")
async def app(folder_ledger: Ledger) -> FastAPI:
    """One application for all: compiling its templates takes longer than a test."""
    made = new_app(folder_ledger)
    mount(made, _clock)
    return made


@pytest.fixture
def clock() -> Clock:
    """The console's clock, which a test moves; right again for each."""
    _clock.moment = datetime.now(UTC)
    return _clock


@pytest.fixture
async def console(app: FastAPI, ledger: Ledger, clock: Clock) -> AsyncIterator[Console]:
    """The console, with the callers of tests/api/front.py."""
    opened = Console(app, ledger)
    await opened.populate()
    yield opened
    await opened.close()
