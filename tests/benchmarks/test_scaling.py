"""The simulation of docs/scaling.md: what must hold of any queue, and what was measured of the whole."""

import json
import statistics
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.scaling import PUBLISHED, Costs, Load, Site, simulated

COSTS = Costs(api=10, relay=5, postgres=30, temporal=50, worker=60)
JOBS = 200
LIKE = 0.25
"""By what part a prediction may differ from what was measured: machines are noisy, and queues are not all."""


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """What `make bench` has written down."""
    document: dict[str, Any] = json.loads(PUBLISHED.read_text("utf-8"))
    return document


def measured(document: dict[str, Any], scenario: str, what: str, system: str = "agentjobs") -> float:
    """The median of this figure."""
    figures = document["scenarios"][scenario]["rounds"]
    (values,) = [one["values"] for one in figures if (one["what"], one["system"]) == (what, system)]
    return float(statistics.median(values))


def test_a_machine_carries_no_more_than_its_cores() -> None:
    outcome = simulated(COSTS, Site(cores=2, workers=4), Load(JOBS))

    limit = 2 * 1_000 / COSTS.all
    assert 0.9 * limit < outcome.per_second <= limit
    assert outcome.busiest == "machine"


def test_one_worker_uses_one_core_and_a_second_one_another() -> None:
    one, two = (
        simulated(COSTS, Site(together=False, workers=workers), Load(JOBS)).per_second for workers in (1, 2)
    )

    assert one == pytest.approx(1_000 / COSTS.worker, rel=0.1)
    assert two == pytest.approx(2 * one, rel=0.1)


def test_calls_wait_beside_each_other_as_far_as_there_are_places() -> None:
    load = Load(JOBS, calls=1, seconds=60)
    roomy, cramped = (simulated(COSTS, Site(places=places), load) for places in (JOBS, JOBS // 4))

    assert 60 < roomy.done_seconds < 120
    assert cramped.done_seconds > 4 * 60


def test_a_job_that_comes_alone_waits_for_nobody() -> None:
    outcome = simulated(COSTS, Site(), Load(20, calls=2, seconds=1, arrive_each=10))

    assert outcome.median_seconds == pytest.approx(2 + COSTS.all / 1_000, rel=0.05)


def test_what_ends_first_is_named() -> None:
    slow_worker = replace(COSTS, worker=500)

    assert simulated(slow_worker, Site(together=False), Load(20)).busiest == "worker-1"


@pytest.mark.parametrize(("system", "workers"), [("agentjobs", 1), ("agentjobs-2", 2)])
def test_it_predicts_the_throughput_that_was_measured(
    published: dict[str, Any], system: str, workers: int
) -> None:
    costs = Costs.measured(published, "throughput", system)

    predicted = simulated(costs, Site(workers=workers), Load(300)).per_second

    assert predicted == pytest.approx(measured(published, "throughput", "jobs a second", system), rel=LIKE)


def test_it_predicts_how_soon_a_thousand_long_calls_are_done(published: dict[str, Any]) -> None:
    costs = Costs.measured(published, "waiting")

    outcome = simulated(costs, Site(places=1_000), Load(1_000, calls=1, seconds=60))

    done = measured(published, "waiting", "seconds until all are done")
    assert outcome.done_seconds == pytest.approx(done, rel=LIKE)
