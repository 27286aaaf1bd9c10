"""Activities over a ledger with one tenant in it, whose user may create tickets."""

import pytest

from tests.activities.stage import Stage
from tests.ledger.fixtures import folder_ledger, ledger, scene
from tests.ledger.scene import Scene

__all__ = ["folder_ledger", "ledger", "scene", "stage"]


@pytest.fixture
async def stage(scene: Scene) -> Stage:
    """Where activities are carried out."""
    await scene.ledger.identity.add_grant(scene.tenant, "ann", "tickets:create", granted_by="test")
    return Stage(scene)
