"""The ledger with one tenant in it, and a receiver of webhooks."""

from collections.abc import AsyncIterator

import pytest

from tests.alerts.receiver import Receiver, receiving
from tests.ledger.fixtures import folder_ledger, ledger, scene

__all__ = ["folder_ledger", "ledger", "receiver", "scene"]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that takes everything."""
    async with receiving() as listening:
        yield listening
