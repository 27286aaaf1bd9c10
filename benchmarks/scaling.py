"""What more machines would carry, by what one job was measured to cost: `python -m benchmarks.scaling`.

A simulation of queues, for docs/scaling.md. Jobs wait for a process, for a core of its machine and for a worker's
free place, and during a model call for nothing. Checked against what was measured of the whole (test_scaling.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import simpy

PUBLISHED: Final = Path(__file__).parent / "published" / "bench.json"
SHARED = ("postgres", "temporal", "relay")
"""One of each, whatever there is of the others. (More relays share the same work.)"""


@dataclass(frozen=True)
class Costs:
    """Milliseconds of CPU of one job, by process."""

    api: float
    relay: float
    postgres: float
    temporal: float
    worker: float

    @classmethod
    def measured(cls, document: Mapping[str, Any], scenario: str, system: str = "agentjobs") -> Costs:
        """As `python -m benchmarks` has written them down: medians, of several processes of a kind together."""
        found = {kind: 0.0 for kind in ("api", "relay", "postgres", "temporal", "worker")}
        for figure in document["scenarios"][scenario]["rounds"]:
            what, _, process = figure["what"].rpartition(": ")
            kind = process.split("-")[0]
            if figure["system"] == system and what == "CPU of a job" and kind in found:
                found[kind] += statistics.median(figure["values"])
        return cls(**found)

    @property
    def all(self) -> float:
        """Of the job."""
        return self.api + self.relay + self.postgres + self.temporal + self.worker


@dataclass(frozen=True)
class Site:
    """What there is. together: all on one machine; else each process has one of its own."""

    cores: int = 2
    together: bool = True
    apis: int = 1
    workers: int = 1
    places: int = 100
    """Of a worker: activities at once."""

    threads: int = 1
    """Cores that one API or worker can use: Python's interpreter runs on one."""


@dataclass(frozen=True)
class Load:
    """What comes. arrive_each: seconds between two jobs; None: all are there at once."""

    jobs: int
    calls: int = 0
    seconds: float = 0.0
    arrive_each: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    per_second: float
    done_seconds: float
    median_seconds: float
    """Of a job, from its arrival to its end."""

    busiest: str
    """The process (or, where they share one, the machine) with the least time left."""


def simulated(costs: Costs, site: Site, load: Load) -> Outcome:
    """All of the load, to its end."""
    run = _Run(costs, site, load)
    run.environment.run()
    return run.outcome()


class _Run:
    def __init__(self, costs: Costs, site: Site, load: Load) -> None:
        self.environment = simpy.Environment()
        self._costs, self._site, self._load = costs, site, load
        names = [*SHARED, *self._all("api", site.apis), *self._all("worker", site.workers)]
        one = simpy.Resource(self.environment, site.cores)
        self._cores = {
            name: one if site.together else simpy.Resource(self.environment, site.cores) for name in names
        }
        self._turns = {name: simpy.Resource(self.environment, self._width(name)) for name in names}
        self._places = {
            name: simpy.Resource(self.environment, site.places) for name in self._all("worker", site.workers)
        }
        self._used = dict.fromkeys(names, 0.0)
        self._took: list[float] = []
        apis, workers = cycle(self._all("api", site.apis)), cycle(self._places)
        for number in range(load.jobs):
            self.environment.process(self._job(number * (load.arrive_each or 0.0), next(apis), next(workers)))

    def outcome(self) -> Outcome:
        """Once it has run."""
        took = sorted(self._took)
        end = self.environment.now
        busy = {name: used / self._width(name) for name, used in self._used.items()}
        busiest = max(busy, key=lambda name: busy[name])
        if self._site.together and sum(self._used.values()) / self._site.cores > busy[busiest]:
            busiest = "machine"
        return Outcome(
            per_second=len(took) / end,
            done_seconds=end,
            median_seconds=took[len(took) // 2],
            busiest=busiest,
        )

    @staticmethod
    def _all(kind: str, number: int) -> list[str]:
        return [f"{kind}-{index + 1}" for index in range(number)]

    def _width(self, name: str) -> int:
        return self._site.cores if name in SHARED else min(self._site.threads, self._site.cores)

    def _job(self, arrives: float, api: str, worker: str) -> Generator[simpy.Event, Any, None]:
        yield self.environment.timeout(arrives)
        yield from self._uses(api, self._costs.api)
        yield from self._uses("relay", self._costs.relay)
        parts = self._load.calls + 1
        for part in range(parts):
            yield from self._uses("temporal", self._costs.temporal / parts)
            yield from self._uses(worker, self._costs.worker / parts)
            yield from self._uses("postgres", self._costs.postgres / parts)
            if part < self._load.calls:
                yield from self._calls(worker)
        self._took.append(self.environment.now - arrives)

    def _calls(self, worker: str) -> Generator[simpy.Event, Any, None]:
        with self._places[worker].request() as place:
            yield place
            yield self.environment.timeout(self._load.seconds)

    def _uses(self, name: str, milliseconds: float) -> Generator[simpy.Event, Any, None]:
        seconds = milliseconds / 1_000
        self._used[name] += seconds
        with self._turns[name].request() as turn:
            yield turn
            with self._cores[name].request() as core:
                yield core
                yield self.environment.timeout(seconds)


def told(costs: Costs, site: Site, load: Load) -> str:
    """One line of a table."""
    outcome = simulated(costs, site, load)
    where = "one machine" if site.together else "each its own"
    return (
        f"| {where}, {site.cores} cores | {site.workers} | {load.calls} x {load.seconds:g} s | "
        f"{outcome.per_second:.1f} | {outcome.busiest} |"
    )


def main() -> None:
    """The table of docs/scaling.md."""
    options = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.scaling")
    options.add_argument("--results", type=Path, default=PUBLISHED, help="what `python -m benchmarks` wrote")
    options.add_argument("--jobs", type=int, default=2_000)
    given = options.parse_args()
    document = json.loads(given.results.read_text("utf-8"))
    rules, models = (Costs.measured(document, scenario) for scenario in ("throughput", "waiting"))
    here, apart = Site(), Site(together=False, apis=2)
    print("| machines | workers | calls of a job | jobs a second | what ends first |\n|---|---|---|---|---|")  # noqa: T201
    for costs, calls in ((rules, Load(given.jobs)), (models, Load(given.jobs, calls=3, seconds=5.0))):
        for site in (here, replace(here, cores=8, workers=4), *(replace(apart, workers=n) for n in (1, 2, 4))):
            print(told(costs, replace(site, places=1_000), calls))  # noqa: T201


if __name__ == "__main__":
    main()
