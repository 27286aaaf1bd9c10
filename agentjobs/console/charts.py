"""Bars, measured here and drawn by a template as SVG: no library, no script, and nothing for a policy to allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agentjobs.api.letter_schemas import FlowShown, ReportLineShown

HEIGHT: Final = 120
WIDTH: Final = 720
FULL: Final = 100
"""Of a bar that lies."""


@dataclass(frozen=True)
class Column:
    """What came and went within one hour or day; lengths in units of the drawing."""

    at: datetime
    died: int
    decided: int
    x: float
    width: float
    died_height: float
    decided_height: float


@dataclass(frozen=True)
class Bar:
    """How often a thing is there; `width` in hundredths of the longest."""

    name: str
    count: int
    width: float


def columns(flow: Sequence[FlowShown]) -> list[Column]:
    """One pair of columns for each hour or day."""
    most = max((max(one.died, one.redriven + one.discarded) for one in flow), default=0) or 1
    step = WIDTH / max(len(flow), 1)
    return [_column(one, number * step, step, most) for number, one in enumerate(flow)]


def bars(lines: Sequence[ReportLineShown]) -> list[Bar]:
    """Open letters by reason, the most frequent first."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.reason] = counts.get(line.reason, 0) + line.count
    most = max(counts.values(), default=0) or 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Bar(reason, count, round(FULL * count / most, 1)) for reason, count in ordered]


def share(part: float, whole: float) -> float:
    """How much of the whole, in hundredths, from 0 to 100."""
    return round(FULL * min(part / whole, 1), 1) if whole else 0.0


def _column(flow: FlowShown, x: float, step: float, most: int) -> Column:
    decided = flow.redriven + flow.discarded
    return Column(
        at=flow.at,
        died=flow.died,
        decided=decided,
        x=round(x, 2),
        width=round(step * 0.42, 2),
        died_height=round(HEIGHT * flow.died / most, 1),
        decided_height=round(HEIGHT * decided / most, 1),
    )
