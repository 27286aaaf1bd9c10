"""GET /metrics: who may read it, what it says, and what it costs the ledger."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.api.measures import FRESH_SECONDS, Measures
from agentjobs.api.metrics import MetricsAccess
from agentjobs.domain.failures import Category
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.metrics import Standing, Standings, Subject
from tests.api.described import check_described
from tests.api.front import REQUEST, Front

TOKEN = "t" * 32
BEARER = {"Authorization": f"Bearer {TOKEN}"}
Samples = dict[tuple[str, tuple[str, ...]], float]


def samples(text: str) -> Samples:
    """Every sample, by its name and the values of its labels in the order of their names."""
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@asynccontextmanager
async def scraping(ledger: Ledger, access: MetricsAccess) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with this access; its answers stand in the OpenAPI document."""
    app = create_app(ledger, built_in_agents(), metrics_access=access)

    async def check(response: httpx.Response) -> None:
        await response.aread()
        check_described(app.openapi(), response)

    transport = httpx.ASGITransport(app, client=("10.1.1.1", 1))
    hooks = {"response": [check]}
    async with httpx.AsyncClient(transport=transport, base_url="http://api.test", event_hooks=hooks) as client:
        yield client


async def scraped(ledger: Ledger) -> Samples:
    async with scraping(ledger, MetricsAccess(is_open=True)) as client:
        return samples((await client.get("/metrics")).text)


class Counting(Standings):
    """Counts the looks into the ledger; each fails while `broken`."""

    def __init__(self) -> None:
        self.looks = 0
        self.broken = False

    async def measure(self) -> list[Standing]:
        self.looks += 1
        if self.broken:
            raise OSError
        return [Standing(subject=Subject.JOBS, label="dead", count=self.looks, oldest_seconds=3.0)]


class Clock:
    """Seconds, as the test sets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()


async def test_without_a_token_there_is_nothing(front: Front) -> None:
    answers = [await front.of(caller).get("/metrics", headers=BEARER) for caller in (None, "adam")]

    assert [answer.status_code for answer in answers] == [404, 404]


@pytest.mark.parametrize("access", [MetricsAccess(TOKEN), MetricsAccess(TOKEN, is_open=True)])
async def test_only_the_token_opens_it(front: Front, access: MetricsAccess) -> None:
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {front.keys['adam']}"},
    ]
    async with scraping(front.ledger, access) as client:
        refused = [await client.get("/metrics", headers=headers) for headers in wrong]
        taken = await client.get("/metrics", headers=BEARER)

    assert [(answer.status_code, "agentjobs_" in answer.text) for answer in refused] == [(401, False)] * len(wrong)
    assert refused[0].headers["www-authenticate"].startswith("Bearer")
    assert taken.status_code == 200
    assert "agentjobs_jobs{" in taken.text


async def test_jobs_are_counted_by_state_with_the_age_of_the_oldest(front: Front) -> None:
    scene = front.scene
    old = await scene.accept()
    await scene.accept()
    await scene.running()
    await scene.dead()
    for job in (await scene.dead(), await scene.dead()):
        await scene.execute("UPDATE dead_letters SET state = 'redrive_requested' WHERE id = $1", job)
    await scene.execute("UPDATE jobs SET created_at = now() - interval '90 s' WHERE id = $1", old.id)
    await scene.execute("UPDATE dead_letters SET died_at = now() - interval '1 h' WHERE state = 'open'")

    found = await scraped(front.ledger)

    states = ("dead", "pending", "retry_wait", "running", "waiting_approval")
    assert [found["agentjobs_jobs", (state,)] for state in states] == [3, 2, 0, 1, 0]
    assert found["agentjobs_jobs_oldest_seconds", ("pending",)] == pytest.approx(90, abs=30)
    assert found["agentjobs_jobs_oldest_seconds", ("dead",)] == pytest.approx(3600, abs=30)
    assert found["agentjobs_jobs_oldest_seconds", ("retry_wait",)] == 0
    assert found["agentjobs_outbox_rows", ("start_job",)] == 6
    assert found["agentjobs_outbox_rows", ("job_died",)] == 3
    assert found["agentjobs_outbox_rows_oldest_seconds", ("cancel_job",)] == 0
    assert found["agentjobs_ledger_up", ()] == 1


async def test_jobs_that_wait_are_counted_by_what_failed(front: Front) -> None:
    job_id = await front.scene.running()
    attempt_id = await front.scene.begin_attempt(job_id)
    await front.scene.fail(attempt_id, release=True, wait_seconds=600, category=Category.RATE_LIMITED)

    found = await scraped(front.ledger)

    assert found["agentjobs_waits", ("rate_limited",)] == 1
    assert found["agentjobs_jobs", ("retry_wait",)] == 1


async def test_requests_are_counted_by_route_and_not_by_path(front: Front) -> None:
    async with scraping(front.ledger, MetricsAccess(is_open=True)) as client:
        client.headers["Authorization"] = f"Bearer {front.keys['ann']}"
        accepted = await client.post("/v1/jobs", json=REQUEST)
        await client.get(f"/v1/jobs/{accepted.json()['id']}")
        await client.get("/v1/jobs/unknown-to-all")
        await client.get("/no/such/path")
        await client.request("BREW", "/v1/jobs")
        told = (await client.get("/metrics")).text

    found = samples(told)
    assert found["agentjobs_http_requests_total", ("POST", "/v1/jobs", "2xx")] == 1
    assert found["agentjobs_http_requests_total", ("GET", "/v1/jobs/{id}", "2xx")] == 1
    assert found["agentjobs_http_requests_total", ("GET", "/v1/jobs/{id}", "4xx")] == 1
    assert found["agentjobs_http_requests_total", ("GET", "unknown", "4xx")] == 1
    assert found["agentjobs_http_request_seconds_count", ("GET", "/v1/jobs/{id}")] == 2
    assert not re.search(r"BREW|no/such|unknown-to-all|acme|ann\b|" + accepted.json()["id"], told)


async def test_scrapes_within_seconds_share_one_look(clock: Clock) -> None:
    standings = Counting()
    measures = Measures(standings, lambda: 7, clock)

    texts = [await measures.text() for _ in range(3)]
    clock.now = FRESH_SECONDS
    later = await measures.text()

    assert standings.looks == 2
    assert [samples(text.decode())["agentjobs_jobs", ("dead",)] for text in (*texts, later)] == [1, 1, 1, 2]
    assert samples(later.decode())["agentjobs_streams", ()] == 7


async def test_without_the_database_the_process_still_tells_its_own_figures(clock: Clock) -> None:
    standings = Counting()
    measures = Measures(standings, lambda: 7, clock)
    standings.broken = True

    found = samples((await measures.text()).decode())
    standings.broken, clock.now = False, FRESH_SECONDS
    after = samples((await measures.text()).decode())

    assert (found["agentjobs_ledger_up", ()], found["agentjobs_streams", ()]) == (0, 7)
    assert ("agentjobs_jobs", ("dead",)) not in found
    assert (after["agentjobs_ledger_up", ()], after["agentjobs_jobs", ("dead",)]) == (1, 2)


async def test_what_has_ended_is_never_read(front: Front) -> None:
    """Among thousands that have ended, the few that have not are found by index."""
    scene = front.scene
    job_id = await scene.running()
    await scene.execute(
        "INSERT INTO jobs SELECT (jsonb_populate_record(jobs, jsonb_build_object('id', 'ended-' || n,"
        " 'state', 'succeeded', 'previous_state', 'running', 'result', '{}'::jsonb, 'finalized_at', now()))).*"
        " FROM jobs, generate_series(1, 5000) AS n WHERE id = $1",
        job_id,
    )
    await scene.execute("ANALYZE jobs")
    statement = scene.ledger.database.run.measure_standings.sql

    plan = "\n".join(row["QUERY PLAN"] for row in await scene.rows(f"EXPLAIN {statement}"))

    assert "Seq Scan on jobs" not in plan, plan
    assert "jobs_live" in plan or "jobs_in_flight" in plan or "jobs_dispatched_and_live" in plan, plan
