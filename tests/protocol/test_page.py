"""docs/protocol.md says what the models and the plays say."""

import re
from typing import Final

from tests.docs.pages import DOCS, rows, section
from tests.protocol.cases import LARGER, MISSING, NOT_NEEDED_ALONE, WHOLE
from tests.protocol.protections import Protection
from tests.protocol.test_without_protection import PLAYED

PAGE: Final = DOCS / "protocol.md"


def test_every_protection_has_its_row_with_the_moves_of_its_counterexample() -> None:
    told = {row[0]: row[1] for row in rows(section(PAGE, "Protections"))}

    assert told == {protection.value: _moves(protection) for protection in Protection}


def _moves(protection: Protection) -> str:
    alone = sorted({missing.moves for missing in MISSING if missing.without == {protection}})
    return " and ".join(str(moves) for moves in alone) if protection not in NOT_NEEDED_ALONE else "none"


def test_every_row_names_the_play_or_another_test() -> None:
    for protection, _moves, _words, test in rows(section(PAGE, "Protections")):
        assert re.fullmatch(r"`tests/[\w/]+\.py::\w+`", test), protection
        if Protection(protection) in PLAYED:
            assert test == f"`tests/protocol/plays.py::{PLAYED[Protection(protection)].play.__name__}`"


def test_every_model_is_listed_and_as_large_as_it_is_said_to_be_at_least() -> None:
    told = dict(re.findall(r"^\| ([a-z_, ]+) \| ([\d,]+) \|", section(PAGE, "What is shown"), re.MULTILINE))

    assert set(told) == {*WHOLE, *LARGER}
    for name, whole in {**WHOLE, **LARGER}.items():
        assert int(told[name].replace(",", "")) >= whole.states, name
