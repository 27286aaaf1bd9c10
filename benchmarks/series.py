"""What was measured round by round, and what follows from it. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.figures import Figure


@dataclass(frozen=True)
class Value:
    """One measured thing of one round."""

    what: str
    unit: str
    value: float


@dataclass
class Series:
    """By what was measured and by system: the values, one a round."""

    values: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)

    def add(self, system: str, measured: Iterable[Value]) -> None:
        """One round of one system."""
        for one in measured:
            self.values.setdefault((one.what, one.unit), {}).setdefault(system, []).append(one.value)

    def figures(self) -> list[Figure]:
        """Of each system."""
        return [
            Figure.of(f"{what}: {system}", unit, values)
            for (what, unit), of_systems in self.values.items()
            for system, values in of_systems.items()
        ]

    def ratios(self, compared: Sequence[str], ours: str) -> list[Figure]:
        """Ours to each other's, of the same round. Rounds that one of the two has not are left out."""
        return [
            Figure.of(f"{what}: {ours} / {system}", "ratio", ratios)
            for (what, _), of_systems in self.values.items()
            if what in compared and ours in of_systems
            for system, values in of_systems.items()
            if system != ours
            if (ratios := [a / b for a, b in zip(of_systems[ours], values, strict=False) if b])
        ]


def percentile(values: Sequence[float], share: int) -> float:
    """The value that `share` of 100 do not exceed. Raises ValueError if there are none."""
    if not values:
        raise ValueError("nothing was measured")
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


def slope(values: Sequence[float]) -> float:
    """By how much the values grow from one to the next, by least squares; 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    return statistics.linear_regression(range(len(values)), values).slope
