"""The ledger with one tenant in it, a receiver, and a relay's lane that may reach it."""

from collections.abc import AsyncIterator

import pytest

from tests.alerts.conftest import receiver
from tests.ledger.fixtures import folder_ledger, ledger, scene
from tests.ledger.scene import Scene
from tests.webhooks.hooks import Hooks, sending

__all__ = ["folder_ledger", "ledger", "receiver", "scene"]


@pytest.fixture
async def hooks(scene: Scene) -> AsyncIterator[Hooks]:
    """Webhooks of the tenant, and a lane that sends to this machine too."""
    async with sending() as sender:
        yield Hooks(scene, sender)
