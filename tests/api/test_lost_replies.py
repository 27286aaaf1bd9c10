"""A submission whose commit was not answered: it is found out what became of it, and there is one job."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest
from httpx import AsyncClient, Response

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.cutting_proxy import Cut, CuttingProxy
from tests.api.front import Front, new_app
from tests.conftest import fresh_database
from tests.world import eventually

TIMES = 20


@pytest.fixture(scope="module")
async def database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """A database's address, for all tests here: each has a text of its own."""
    async with fresh_database(postgres) as url:
        yield url


@pytest.fixture
async def proxy(database: str) -> AsyncIterator[CuttingProxy]:
    port = urlsplit(database).port
    assert port is not None
    async with CuttingProxy.before(port) as proxy:
        yield proxy


@pytest.fixture
async def front(database: str, proxy: CuttingProxy) -> AsyncIterator[Front]:
    """The API, whose connections to the database pass the proxy."""
    async with opened(database, proxy) as front:
        yield front


@asynccontextmanager
async def opened(database: str, proxy: CuttingProxy) -> AsyncIterator[Front]:
    parts = urlsplit(database)
    through = parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{proxy.port}"))
    ledger = await Ledger.open(urlunsplit(through), size=3, application_name="cut")
    front = Front(new_app(ledger), ledger)
    await front.populate()
    yield front
    await front.close()
    await ledger.close()


async def submit(client: AsyncClient, text: str, key: str | None) -> Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.post("/v1/jobs", json={"input": {"text": text}}, headers=headers)


async def jobs_of(front: Front, text: str) -> list[str]:
    rows = await front.scene.rows("SELECT id FROM jobs WHERE input ->> 'text' = $1", text)
    return [row["id"] for row in rows]


@pytest.mark.parametrize("with_key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize("cut", [Cut.UNHEARD, Cut.SENT, Cut.ANSWERED])
async def test_wherever_the_connection_is_cut_there_is_the_one_job_that_was_answered(
    front: Front, proxy: CuttingProxy, cut: Cut, with_key: bool
) -> None:
    ann = front.of("ann")
    for number in range(TIMES):
        text = f"{cut} {with_key} {number}"
        proxy.cut_at(text, cut)

        answer = await submit(ann, text, text.replace(" ", "-") if with_key else None)

        assert answer.status_code == 202, answer.text
        assert answer.json()["state"] == "pending"
        assert await jobs_of(front, text) == [answer.json()["id"]]
    assert proxy.cut_count == TIMES


@pytest.mark.parametrize("key", ["late", None])
async def test_a_statement_that_arrives_late_makes_no_second_job(
    front: Front, proxy: CuttingProxy, key: str | None
) -> None:
    text = f"late {key}"
    proxy.cut_at(text, Cut.LATE)

    answer = await submit(front.of("ann"), text, key)
    proxy.released.set()
    await eventually(lambda: _sessions_rest(front), "the late statement's end")

    assert answer.status_code == 202
    assert await jobs_of(front, text) == [answer.json()["id"]]


async def _sessions_rest(front: Front) -> bool:
    busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cut' AND state <> 'idle'"
    count: int = await front.ledger.database.pool.fetchval(busy)
    return count <= 1  # the one that asks


async def test_what_cannot_be_found_out_is_not_guessed(
    database: str, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentjobs.ledger.database.COMMAND_TIMEOUT_SECONDS", 1.0)
    async with opened(database, proxy) as front:
        ann = front.of("ann")
        proxy.cut_at("silent", Cut.SILENT)

        lost = await submit(ann, "silent", "silent")
        again = await submit(ann, "silent", "silent")

        assert (lost.status_code, again.status_code) == (503, 202)
        assert "same Idempotency-Key" in lost.json()["detail"]
        assert await jobs_of(front, "silent") == [again.json()["id"]]
