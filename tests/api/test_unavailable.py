"""When the database goes away: 503 and when to come back, never 500; and it goes on by itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import asyncpg
import pytest

from agentjobs.api import health, strict_route
from agentjobs.ledger.database import Database
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.front import REQUEST, Front, new_app
from tests.conftest import fresh_database
from tests.ports import free_port

PATHS = [
    "/v1/jobs",
    "/v1/jobs/x",
    "/v1/waiting",
    "/v1/dead-letters",
    "/v1/budget",
    "/v1/keys",
    "/v1/grants",
    "/readyz",
]


@pytest.fixture
async def own_front(postgres: EmbeddedPostgres) -> AsyncIterator[Front]:
    """The API over a database that the test may take away."""
    async with fresh_database(postgres) as url:
        ledger = await Ledger.open(url, size=3, application_name="away")
        front = Front(new_app(ledger), ledger)
        await front.populate()
        yield front
        await front.close()
        await ledger.close()


@pytest.fixture
async def nowhere() -> AsyncIterator[Front]:
    """The API over a port where nothing listens."""
    dsn = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    pool = await asyncpg.create_pool(dsn, min_size=0, max_size=2)
    ledger = Ledger.over(Database(pool))
    front = Front(new_app(ledger), ledger, {"ann": "ajk_" + "x" * 43})
    yield front
    await front.close()
    await ledger.close()


async def set_connectable(postgres: EmbeddedPostgres, name: str, *, connectable: bool) -> None:
    await at_the_server(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS {connectable}")
    if not connectable:
        await break_connections(postgres)


async def break_connections(postgres: EmbeddedPostgres) -> None:
    pids = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'away'"
    await at_the_server(postgres, pids)


async def at_the_server(postgres: EmbeddedPostgres, statement: str) -> None:
    session = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await session.execute(statement)
    finally:
        await session.close()


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_database_every_route_says_so(nowhere: Front, path: str) -> None:
    response = await nowhere.of("ann").get(path)

    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0


async def test_without_a_database_nothing_is_accepted(nowhere: Front) -> None:
    response = await nowhere.of("ann").post("/v1/jobs", json=REQUEST)

    assert response.status_code == 503


async def test_without_a_database_the_process_is_healthy_all_the_same(nowhere: Front) -> None:
    response = await nowhere.of(None).get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_the_api_goes_on_when_the_database_is_back(own_front: Front, postgres: EmbeddedPostgres) -> None:
    ann = own_front.of("ann")
    name = await own_front.ledger.database.pool.fetchval("SELECT current_database()")
    assert (await ann.post("/v1/jobs", json=REQUEST)).status_code == 202

    await set_connectable(postgres, name, connectable=False)
    away = [await ann.post("/v1/jobs", json=REQUEST) for _ in range(5)]
    not_ready = await ann.get("/readyz")
    await set_connectable(postgres, name, connectable=True)
    back = [await ann.post("/v1/jobs", json=REQUEST) for _ in range(5)]

    assert {answer.status_code for answer in away} == {503}
    assert not_ready.status_code == 503
    assert {answer.status_code for answer in back} == {202}
    assert await own_front.scene.count("jobs") == 6


async def test_a_database_that_only_reads_accepts_nothing(own_front: Front, postgres: EmbeddedPostgres) -> None:
    name = await own_front.ledger.database.pool.fetchval("SELECT current_database()")
    await at_the_server(postgres, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await break_connections(postgres)

    accepted = await own_front.of("ann").post("/v1/jobs", json=REQUEST)
    listed = await own_front.of("ann").get("/v1/jobs")

    assert (accepted.status_code, listed.status_code) == (503, 200)
    assert int(accepted.headers["retry-after"]) > 0
    assert listed.json()["items"] == []


@pytest.mark.parametrize(
    "error",
    [asyncpg.DiskFullError, asyncpg.TooManyConnectionsError, asyncpg.OutOfMemoryError, asyncpg.PostgresIOError],
)
async def test_a_server_that_is_full_or_broken_is_no_fault_of_the_request(
    own_front: Front, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    async def failing(*_: object, **__: object) -> None:
        raise error("pg_wal: hunter2canary")

    monkeypatch.setattr(type(own_front.ledger.jobs), "accept", failing)

    answer = await own_front.of("ann").post("/v1/jobs", json=REQUEST)

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "canary" not in answer.text


async def test_connections_that_break_are_replaced(own_front: Front, postgres: EmbeddedPostgres) -> None:
    ann = own_front.of("ann")
    await asyncio.gather(*(ann.get("/v1/jobs") for _ in range(9)))

    await break_connections(postgres)
    statuses = [(await ann.get("/v1/jobs")).status_code for _ in range(9)]

    assert set(statuses) <= {200, 503}
    assert statuses[-3:] == [200, 200, 200]


async def test_a_full_pool_is_not_waited_for(own_front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_route, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(health, "READY_SECONDS", 0.01)
    ann = own_front.of("ann")

    async with AsyncExitStack() as held:
        for _ in range(3):
            await held.enter_async_context(own_front.ledger.database.pool.acquire())
        answers = await asyncio.gather(
            *(ann.post("/v1/jobs", json=REQUEST) for _ in range(20)), ann.get("/readyz")
        )
    monkeypatch.undo()
    afterwards = await asyncio.gather(*(ann.post("/v1/jobs", json=REQUEST) for _ in range(20)))

    assert {answer.status_code for answer in answers} == {503}
    assert {answer.status_code for answer in afterwards} == {202}
    assert await own_front.scene.count("jobs") == 20


async def test_requests_that_are_broken_off_give_their_connections_back(own_front: Front) -> None:
    ann = own_front.of("ann")
    for number in range(100):
        tasks = [asyncio.ensure_future(ann.post("/v1/jobs", json=REQUEST)) for _ in range(10)]
        for _ in range(number % 20):  # each round at another point of the way
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    answers = await asyncio.gather(*(ann.get("/v1/jobs") for _ in range(9)))
    idle = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'away' AND state LIKE 'idle in%'"

    assert {answer.status_code for answer in answers} == {200}
    assert own_front.ledger.database.pool.get_size() <= 3
    assert await own_front.ledger.database.pool.fetchval(idle) == 0
