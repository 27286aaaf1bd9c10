"""Figures of a run: measured values with their count, median and spread, as JSON and as a table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One thing that was measured, `n` times."""

    what: str
    unit: str
    n: int
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, what: str, unit: str, values: Sequence[float]) -> Figure:
        """From the values; raises ValueError if there are none."""
        if not values:
            raise ValueError(f"nothing was measured of: {what}")
        low, high = round(min(values), 3), round(max(values), 3)
        return cls(what, unit, len(values), round(statistics.median(values), 3), low, high)


def as_json(figures: Sequence[Figure]) -> str:
    """One document."""
    return json.dumps([asdict(figure) for figure in figures], indent=1)


def as_table(figures: Sequence[Figure]) -> str:
    """Lines for people."""
    width = max(len(figure.what) for figure in figures)
    head = f"{'what':<{width}}  {'unit':<8} {'n':>4} {'median':>9} {'least':>9} {'most':>9}"
    lines = [f"{f.what:<{width}}  {f.unit:<8} {f.n:>4} {f.median:>9g} {f.least:>9g} {f.most:>9g}" for f in figures]
    return "\n".join([head, *lines])
