"""The product over a ledger with one tenant in it, to be driven through the model's counterexamples."""

from tests.activities.conftest import stage
from tests.ledger.fixtures import folder_ledger, ledger, scene

__all__ = ["folder_ledger", "ledger", "scene", "stage"]
