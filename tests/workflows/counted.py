"""A ledger that counts its statements, by name."""

from collections import Counter
from copy import copy
from typing import Any

from agentjobs.ledger.ledger import Ledger


class Counted:
    """The statements of a ledger; `counts` says how often each was sent."""

    def __init__(self, statements: Any) -> None:
        self._statements = statements
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        statement = getattr(self._statements, name)

        def send(*values: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return statement(*values, **named)

        return send


def counting(ledger: Ledger) -> tuple[Ledger, Counter[str]]:
    """A ledger over the same pool, and what it has sent."""
    database = copy(ledger.database)
    database.run = Counted(ledger.database.run)
    return Ledger.over(database), database.run.counts
