"""What a scenario is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

from benchmarks.peers.servers import Servers
from benchmarks.peers.system import Job, System
from benchmarks.series import Value

_numbers = count(1)


@dataclass(frozen=True)
class Sizes:
    """How much of everything; None: as the scenario has it."""

    jobs: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Scenario:
    """One question. `measure` answers it once, for one system that it starts and stops."""

    name: str
    measure: Callable[[System, Servers, Sizes], Awaitable[list[Value]]]
    systems: tuple[str, ...]
    """Unless the command line names others."""

    compared: tuple[str, ...] = ()
    """Of these, the ratio of ours to each other system is told, round by round."""


def jobs_of(count_of: int, steps: int = 1, seconds: float = 0.0) -> list[Job]:
    """That many, of names that no other has."""
    return [Job(f"job-{next(_numbers)}", steps, seconds) for _ in range(count_of)]
