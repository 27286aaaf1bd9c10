"""What every statement of the ledger keeps to."""

import re
from pathlib import Path

import pytest

from agentjobs import ledger

FILES = sorted((Path(ledger.__file__).parent / "queries").glob("*.sql"))
LOCKED_IN_A_SUBQUERY = re.compile(r"\bIN\s*\(\s*SELECT\b[^()]*(?:\([^()]*\)[^()]*)*\bSKIP\s+LOCKED", re.IGNORECASE)


def test_the_mistake_is_known() -> None:
    assert LOCKED_IN_A_SUBQUERY.search("id IN (SELECT id FROM t WHERE a <= now() LIMIT 2 FOR UPDATE SKIP LOCKED)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_claimed_is_chosen_once(file: Path) -> None:
    """The planner may run a sub-query anew for every row: each time it passes over the rows it has locked and
    takes LIMIT more. A CTE that is MATERIALIZED runs once."""
    assert not LOCKED_IN_A_SUBQUERY.search(file.read_text())
