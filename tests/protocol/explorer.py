"""Every interleaving of a small model, breadth first: so the first counterexample is a shortest one.

A model is a state to begin with and, for each state, the moves that somebody could make next. What is checked: a
condition on every state, and that from every state a good end can still be reached (no dead ends). That is weaker
than a proof that the end is reached: it says that nothing has made it impossible.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")

DEAD_END = "from here no good end can be reached any more"


class Move(NamedTuple):
    """Somebody does something: one line of a trace."""

    who: str
    what: str
    """The name of a step, as in names.py."""

    how: str = ""
    """What came of it, where that is not the same each time."""

    def __str__(self) -> str:
        return f"{self.who}: {self.what}" + (f" ({self.how})" if self.how else "")


@dataclass(frozen=True)
class Model(Generic[S]):
    """What is explored."""

    start: S
    moves: Callable[[S], Iterable[tuple[Move, S]]]
    broken: Callable[[S], str | None]
    """The condition that does not hold in this state, in words."""

    is_good_end: Callable[[S], bool]


@dataclass(frozen=True)
class Counterexample:
    """How something goes wrong, step by step."""

    broken: str
    trace: tuple[Move, ...]

    def __str__(self) -> str:
        return "\n".join([self.broken, *(f"  {number}. {move}" for number, move in enumerate(self.trace, 1))])


@dataclass(frozen=True)
class Explored:
    """What an exploration has seen."""

    states: int
    transitions: int
    names: frozenset[str]
    """The steps that were taken somewhere."""

    counterexample: Counterexample | None


class _Seen(Generic[S]):
    """States in the order in which they were found, with how each was reached first, and from where."""

    def __init__(self, start: S) -> None:
        self.states = [start]
        self.numbers = {start: 0}
        self.reached_by: list[tuple[int, Move] | None] = [None]
        self.before: list[list[int]] = [[]]
        self.transitions = 0

    def note(self, origin: int, move: Move, state: S) -> None:
        """This move leads from there to here."""
        self.transitions += 1
        number = self.numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.reached_by.append((origin, move))
            self.before.append([])
        self.before[number].append(origin)

    def trace_to(self, number: int) -> tuple[Move, ...]:
        """A shortest way to this state."""
        moves = []
        while (step := self.reached_by[number]) is not None:
            number = step[0]
            moves.append(step[1])
        return tuple(reversed(moves))


def explore(model: Model[S]) -> Explored:
    """All of the model, or up to its first counterexample."""
    seen = _Seen(model.start)
    names: set[str] = set()
    number = 0
    while number < len(seen.states):
        state = seen.states[number]
        broken = model.broken(state)
        if broken is not None:
            return _explored(seen, names, Counterexample(broken, seen.trace_to(number)))
        for move, following in model.moves(state):
            names.add(move.what)
            seen.note(number, move, following)
        number += 1
    dead_end = next(_dead_ends(model, seen), None)
    return _explored(seen, names, None if dead_end is None else Counterexample(DEAD_END, seen.trace_to(dead_end)))


def _explored(seen: _Seen[S], names: set[str], counterexample: Counterexample | None) -> Explored:
    return Explored(len(seen.states), seen.transitions, frozenset(names), counterexample)


def _dead_ends(model: Model[S], seen: _Seen[S]) -> Iterator[int]:
    waiting = [number for number, state in enumerate(seen.states) if model.is_good_end(state)]
    alive = set(waiting)
    while waiting:
        for number in seen.before[waiting.pop()]:
            if number not in alive:
                alive.add(number)
                waiting.append(number)
    return (number for number in range(len(seen.states)) if number not in alive)
