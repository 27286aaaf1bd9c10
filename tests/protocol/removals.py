"""The ledger with one protection cut out of its SQL: one statement is loaded from changed text."""

from copy import copy
from dataclasses import dataclass
from pathlib import Path

import aiosql

from agentjobs import ledger as ledger_package
from agentjobs.ledger.ledger import Ledger

QUERIES = Path(ledger_package.__file__).parent / "queries"


@dataclass(frozen=True)
class Removal:
    """Words of one statement, and what stands in their place when the protection is gone."""

    file: str
    statement: str
    words: str
    instead: str = ""

    def taken_from(self, ledger: Ledger) -> Ledger:
        """A ledger over the same pool without it."""
        changed = aiosql.from_str(
            self.changed((QUERIES / self.file).read_text("utf-8")), "asyncpg", mandatory_parameters=False
        )
        database = copy(ledger.database)
        database.run = copy(ledger.database.run)
        setattr(database.run, self.statement, getattr(changed, self.statement))
        return Ledger.over(database)

    def changed(self, text: str) -> str:
        """The file's text without it. Raises ValueError unless the statement has these words once."""
        before, name, rest = text.partition(f"-- name: {self.statement}")
        body, following, after = rest.partition("-- name: ")
        if body.count(self.words) != 1:
            raise ValueError(f"{self.statement} has these words {body.count(self.words)} times: {self.words}")
        return before + name + body.replace(self.words, self.instead) + following + after
