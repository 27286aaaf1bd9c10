"""The API over a real ledger, as its own tests have it."""

from tests.api.conftest import adam, ann, app, front, rita
from tests.ledger.fixtures import folder_ledger, ledger

__all__ = ["adam", "ann", "app", "folder_ledger", "front", "ledger", "rita"]
