"""What every statement of the ledger keeps to."""

import re
from pathlib import Path

import pytest

from agentjobs import ledger

FILES = sorted((Path(ledger.__file__).parent / "queries").glob("*.sql"))
OUTLIVES_ITS_TRANSACTION = re.compile(
    r"pg_(?:try_)?advisory_lock(?:_shared)?\s*\(|set_config\([^)]*false\s*\)"
    r"|^\s*(?:LISTEN|DECLARE|PREPARE|SET (?!\w+ =))",
    re.IGNORECASE,
)
ON_SESSIONS_OF_THEIR_OWN = {"hold_worker_lock", "notice_lost_peer", "hold_followed_lock"}
LOCKED_IN_A_SUBQUERY = re.compile(r"\bIN\s*\(\s*SELECT\b[^()]*(?:\([^()]*\)[^()]*)*\bSKIP\s+LOCKED", re.IGNORECASE)


def test_the_mistake_is_known() -> None:
    assert LOCKED_IN_A_SUBQUERY.search("id IN (SELECT id FROM t WHERE a <= now() LIMIT 2 FOR UPDATE SKIP LOCKED)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_claimed_is_chosen_once(file: Path) -> None:
    """The planner may run a sub-query anew for every row: each time it passes over the rows it has locked and
    takes LIMIT more. A CTE that is MATERIALIZED runs once."""
    assert not LOCKED_IN_A_SUBQUERY.search(file.read_text())


def test_no_statement_of_the_pool_leaves_anything_in_its_session() -> None:
    """Sessions go back into the pool as they are (session.py)."""
    statements = {
        name: text
        for file in FILES
        for name, text in re.findall(r"^-- name: (\w+)\S*\n(.*?)(?=^-- name: |\Z)", file.read_text(), re.M | re.S)
    }

    leave = {name for name, text in statements.items() if OUTLIVES_ITS_TRANSACTION.search(text)}

    assert leave == ON_SESSIONS_OF_THEIR_OWN
