"""What the API's process measures: its requests, its streams, and what stands in the ledger.

Labels are closed sets: templates of routes and not paths, classes of statuses, states, categories, topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agentjobs.domain.failures import RETRYABLE
from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger.metrics import Standing, Standings, Subject
from agentjobs.ledger.outbox import Topic

log = structlog.get_logger()

FRESH_SECONDS: Final = 5.0
"""How old what stands in the ledger may be: so that scrapes, however many, cost one statement in that time."""

MEASURE_SECONDS: Final = 2.0
"""A scraper's patience is ten seconds; the process's own figures must reach it also without the database."""

DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds in seconds: requests take milliseconds, and are given up after five seconds. Streams are longer."""


@dataclass(frozen=True)
class Family:
    """How one subject is told: a number for each value of its label, and perhaps the age of the oldest."""

    subject: Subject
    name: str
    label: str
    told: str
    oldest: str | None = None
    known: tuple[str, ...] = ()
    """Told also where there is none: a series that comes and goes cannot be compared with its own past."""

    def counts(self, standings: Iterable[Standing]) -> Metric:
        """How many there are."""
        return self._gauge(self.name, self.told, {one.label: float(one.count) for one in standings})

    def ages(self, standings: Iterable[Standing]) -> Metric:
        """Since how many seconds the oldest is there; 0 where there is none."""
        ages = {one.label: one.oldest_seconds or 0.0 for one in standings}
        return self._gauge(f"{self.name}_oldest_seconds", self.oldest or "", ages)

    def _gauge(self, name: str, told: str, values: dict[str, float]) -> Metric:
        gauge = GaugeMetricFamily(name, told, labels=(self.label,))
        for label, value in {**dict.fromkeys(self.known, 0.0), **values}.items():
            gauge.add_metric((label,), value)
        return gauge


FAMILIES: Final = (
    Family(
        Subject.JOBS,
        "agentjobs_jobs",
        "state",
        "Jobs that live, and those that are dead.",
        "Age of the oldest job in the state; of a dead one, since it died.",
        known=tuple(sorted((*LIVE, JobState.DEAD))),
    ),
    Family(
        Subject.WAITS,
        "agentjobs_waits",
        "category",
        "Jobs that wait for a retry, by the failure before.",
        known=tuple(sorted(RETRYABLE)),
    ),
    Family(
        Subject.OUTBOX,
        "agentjobs_outbox_rows",
        "topic",
        "Rows that Temporal is not told of yet.",
        "Age of the oldest such row.",
        known=(*sorted(Topic), "call_redrive"),
    ),
    Family(
        Subject.WEBHOOK_DELIVERIES,
        "agentjobs_webhook_deliveries",
        "state",
        "Deliveries to webhooks of tenants.",
        "Age of the oldest such delivery.",
    ),
    Family(
        Subject.ALERT_DELIVERIES,
        "agentjobs_alert_deliveries",
        "state",
        "Alerts on their way to a sink.",
        "Age of the oldest such alert.",
    ),
    Family(Subject.WORKERS, "agentjobs_workers", "state", "Workers that are on record as present."),
)


class Measures:
    """The figures of one process, as text for a scraper."""

    def __init__(
        self, standings: Standings, stream_count: Callable[[], int], clock: Callable[[], float] = monotonic
    ) -> None:
        self._standings = standings
        self._clock = clock
        self._measuring = asyncio.Lock()
        self._latest: tuple[float, list[Standing] | None] | None = None
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "agentjobs_http_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._durations = Histogram(
            "agentjobs_http_request_seconds",
            "How long an answer took; of a stream, how long it was open.",
            ("method", "route"),
            buckets=DURATIONS,
            registry=self._registry,
        )
        streams = Gauge("agentjobs_streams", "Streams of events that are open.", registry=self._registry)
        streams.set_function(stream_count)

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """A request is over. `route` is a template, and `method` one of a closed set."""
        count, duration = self._of(method, route, f"{status // 100}xx")
        count.inc()
        duration.observe(seconds)

    @cache  # noqa: B019 - as many as there are series, and as long as the process lives
    def _of(self, method: str, route: str, status: str) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, status), self._durations.labels(method, route)

    async def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        standings = await self._fresh()
        return generate_latest(_Told(self._registry, standings))

    async def _fresh(self) -> list[Standing] | None:
        async with self._measuring:  # scrapes that come together share one look
            if self._latest is None or self._clock() >= self._latest[0]:
                measured = await self._measured()
                self._latest = (self._clock() + FRESH_SECONDS, measured)
            return self._latest[1]

    async def _measured(self) -> list[Standing] | None:
        try:
            async with asyncio.timeout(MEASURE_SECONDS):
                return await self._standings.measure()
        except Exception as error:  # whatever it is, the scraper is told that the ledger was not measured
            log.warning("ledger_not_measured", error_type=type(error).__name__)
            return None


class _Told(Collector):
    """What one scrape is told: the process's own figures, and what was last seen in the ledger."""

    def __init__(self, own: CollectorRegistry, standings: list[Standing] | None) -> None:
        self._own = own
        self._standings = standings

    def collect(self) -> Iterator[Metric]:
        """Every family, once."""
        yield from self._own.collect()
        up = "Whether the ledger could be measured: 1, or 0, and then none of its figures is here."
        yield GaugeMetricFamily("agentjobs_ledger_up", up, float(self._standings is not None))
        if self._standings is not None:
            yield from families(self._standings)


def families(standings: Iterable[Standing]) -> Iterator[Metric]:
    """What stands in the ledger, as gauges."""
    found: dict[Subject, list[Standing]] = {subject: [] for subject in Subject}
    for standing in standings:
        found[standing.subject].append(standing)
    for family in FAMILIES:
        yield family.counts(found[family.subject])
        if family.oldest is not None:
            yield family.ages(found[family.subject])
