"""The explorer finds what is planted, by a shortest way."""

from collections.abc import Iterator

from tests.protocol.explorer import DEAD_END, Model, Move, explore


def counting(*, broken_at: int = -1, stuck_at: int = -1, end: int = 9) -> Model[int]:
    """A number that goes up by one or by two."""

    def moves(number: int) -> Iterator[tuple[Move, int]]:
        if number != stuck_at:
            yield from ((Move("it", f"plus {by}"), number + by) for by in (1, 2) if number + by <= end)

    return Model(0, moves, lambda number: "broken" if number == broken_at else None, lambda number: number == end)


def test_what_is_sound_is_explored_as_a_whole() -> None:
    explored = explore(counting())

    assert (explored.states, explored.transitions, explored.counterexample) == (10, 17, None)
    assert explored.names == {"plus 1", "plus 2"}


def test_a_broken_state_is_found_by_a_shortest_way() -> None:
    found = explore(counting(broken_at=5)).counterexample

    assert found is not None
    assert (found.broken, len(found.trace)) == ("broken", 3)
    assert str(found).splitlines()[:2] == ["broken", "  1. it: plus 1"]


def test_a_state_without_a_way_to_a_good_end_is_found() -> None:
    found = explore(counting(stuck_at=4)).counterexample

    assert found is not None
    assert (found.broken, [move.what for move in found.trace]) == (DEAD_END, ["plus 2", "plus 2"])
