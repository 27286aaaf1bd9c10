"""The ledger with one tenant in it."""

from tests.ledger.fixtures import folder_ledger, ledger, scene

__all__ = ["folder_ledger", "ledger", "scene"]
