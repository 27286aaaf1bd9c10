"""All interleavings of the models keep the invariants; without a protection the model finds what it is for."""

import pytest

from tests.protocol.cases import MISSING, NOT_NEEDED_ALONE, WHOLE, Missing
from tests.protocol.explorer import explore
from tests.protocol.names import Outside, Step
from tests.protocol.protections import Protection


@pytest.fixture(scope="module")
def taken() -> set[str]:
    """The names of all steps that an exploration has taken."""
    return set()


def _name(missing: Missing) -> str:
    return "+".join(sorted(protection.name for protection in missing.without))


@pytest.mark.parametrize("name", WHOLE)
def test_with_everything_in_place_every_interleaving_keeps_the_invariants(name: str, taken: set[str]) -> None:
    explored = explore(WHOLE[name].build(frozenset()))

    taken |= explored.names
    assert explored.counterexample is None, str(explored.counterexample)
    assert explored.states >= WHOLE[name].states  # an empty exploration would find nothing either


def test_every_step_that_has_a_name_is_taken(taken: set[str]) -> None:
    assert set(Step) | set(Outside) == taken


@pytest.mark.parametrize("missing", MISSING, ids=_name)
def test_without_a_protection_there_is_a_counterexample(missing: Missing) -> None:
    found = explore(missing.build(missing.without)).counterexample

    assert found is not None
    assert (found.broken, len(found.trace)) == (missing.broken, missing.moves), str(found)


@pytest.mark.parametrize("protection", NOT_NEEDED_ALONE)
def test_a_second_line_is_not_needed_as_long_as_the_first_holds(protection: Protection) -> None:
    build, _because = NOT_NEEDED_ALONE[protection]

    assert explore(build(frozenset({protection}))).counterexample is None


def test_every_protection_is_taken_away_somewhere() -> None:
    alone = {one for missing in MISSING if len(missing.without) == 1 for one in missing.without}

    assert alone | set(NOT_NEEDED_ALONE) == set(Protection)
    assert alone & set(NOT_NEEDED_ALONE) == set()
