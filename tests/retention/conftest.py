"""The ledger with one tenant in it, and the API over it."""

from tests.api.conftest import adam, ann, app, front, rita
from tests.ledger.fixtures import folder_ledger, ledger, scene

__all__ = ["adam", "ann", "app", "folder_ledger", "front", "ledger", "rita", "scene"]
