"""What the model's log says of a system's jobs. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One line of the log: a call that came (`asked`) or that was answered."""

    event: str
    at: float
    job: str
    call: str


@dataclass(frozen=True)
class Calls:
    """Those of some jobs, in order."""

    lines: tuple[Line, ...]

    @classmethod
    def read(cls, log: Path, jobs: Collection[str]) -> Calls:
        """From the log, as it stands."""
        return cls.of(log.read_text("utf-8").splitlines() if log.exists() else [], jobs)

    @classmethod
    def of(cls, lines: Iterable[str], jobs: Collection[str]) -> Calls:
        """From lines of JSON."""
        read = (json.loads(line) for line in lines)
        known = set(jobs)
        return cls(
            tuple(Line(one["event"], one["at"], one["job"], one["call"]) for one in read if one["job"] in known)
        )

    @property
    def asked(self) -> list[Line]:
        """What was paid for."""
        return [line for line in self.lines if line.event == "asked"]

    @property
    def answered(self) -> list[Line]:
        """What came to its answer."""
        return [line for line in self.lines if line.event == "answered"]

    @property
    def repeated(self) -> int:
        """How many were made again."""
        return sum(times - 1 for times in Counter((line.job, line.call) for line in self.asked).values())

    @property
    def repeated_answered(self) -> int:
        """How many were made again after their answer had gone out, if only for a millisecond."""
        known: set[tuple[str, str]] = set()
        repeated = 0
        for line in self.lines:
            if line.event == "answered":
                known.add((line.job, line.call))
            elif (line.job, line.call) in known:
                repeated += 1
        return repeated

    @property
    def repeated_late(self) -> int:
        """How many were made again after the job's next call: the answer was not only there, but had been used."""
        seen: dict[str, list[str]] = {}
        repeated = 0
        for line in self.asked:
            calls = seen.setdefault(line.job, [])
            if line.call not in calls:
                calls.append(line.call)
            elif line.call != calls[-1]:
                repeated += 1
        return repeated

    def moved_after(self, at: float) -> dict[str, float]:
        """By job: seconds from this moment to its next call."""
        moved: dict[str, float] = {}
        for line in self.asked:
            if line.at > at:
                moved.setdefault(line.job, line.at - at)
        return moved
