"""What was measured with and without open streams, as figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.figures import Figure


class With(StrEnum):
    """What is open while submissions are measured."""

    NONE = "no streams"
    READING = "streams"
    HALF_DEAF = "streams, half deaf"


@dataclass
class Seen:
    """What one measurement gave."""

    latencies: list[float]
    seconds: float
    cpu_seconds: float
    memory_bytes: int
    events: list[float] = field(default_factory=list)

    def p(self, percent: int) -> float:
        """A percentile of the latency, in milliseconds."""
        return statistics.quantiles(self.latencies, n=100)[percent - 1] * 1_000

    @property
    def rate(self) -> float:
        """Submissions a second."""
        return len(self.latencies) / self.seconds


def figures_of(what: With, rounds: Sequence[Seen]) -> list[Figure]:
    """Of all rounds with the same open."""
    late = [one * 1_000 for seen in rounds for one in seen.events]
    figures = [
        Figure.of(f"{what}: submission, p50 of a round", "ms", [seen.p(50) for seen in rounds]),
        Figure.of(f"{what}: submission, p99 of a round", "ms", [seen.p(99) for seen in rounds]),
        Figure.of(f"{what}: submissions", "1/s", [seen.rate for seen in rounds]),
        Figure.of(f"{what}: processor of the API", "of 1", [seen.cpu_seconds / seen.seconds for seen in rounds]),
        Figure.of(f"{what}: memory of the API", "MB", [seen.memory_bytes / 1e6 for seen in rounds]),
    ]
    if late:
        figures += [
            Figure.of(f"{what}: event, from commit to reader", "ms", late),
            Figure.of(f"{what}: event, its p95", "ms", [statistics.quantiles(late, n=20)[18]]),
        ]
    return figures


def compared_of(seen: dict[With, list[Seen]]) -> list[Figure]:
    """With streams against without, in the same round."""
    figures = []
    for what in (With.READING, With.HALF_DEAF):
        pairs = list(zip(seen[what], seen[With.NONE], strict=True))
        figures += [
            Figure.of(f"{what} / none: p50 in its round", "ratio", [a.p(50) / b.p(50) for a, b in pairs]),
            Figure.of(f"{what} / none: p99 in its round", "ratio", [a.p(99) / b.p(99) for a, b in pairs]),
            Figure.of(f"{what} / none: rate in its round", "ratio", [a.rate / b.rate for a, b in pairs]),
        ]
    return figures


def memory_of(before: Seen, with_streams: Sequence[Seen], streams: int) -> Figure:
    """What each stream adds to the process."""
    # Against the time before the first stream: afterwards the process keeps what it had.
    grown = [(seen.memory_bytes - before.memory_bytes) / streams / 1e3 for seen in with_streams]
    return Figure.of("memory of a stream", "kB", grown)
