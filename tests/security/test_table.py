"""docs/security.md has a row for each rule, and each row has a test or says that it is open.

That the tests exist, the tests of the documentation see to (tests/docs/test_docs.py).
"""

import re

import pytest

from tests.docs.pages import DOCS

PAGE = DOCS / "security.md"
RULES = [f"S{number}" for number in range(1, 37)]


def rows() -> dict[str, list[str]]:
    found = re.findall(r"^\| (S\d+) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {rule: rest.split(" | ") for rule, rest in found}


def test_every_rule_has_its_row_in_order() -> None:
    assert list(rows()) == RULES


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_proved_or_open(rule: str) -> None:
    told, kept_in, proof = rows()[rule]

    assert told.endswith(".")
    assert kept_in
    assert re.search(r"`tests/[\w/]+\.py::test_\w+`", proof) or proof.startswith("Open: ")
