"""A job in somebody else's transaction: together with their rows, or not at all."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from agentjobs.domain.job import Budget
from agentjobs.domain.quotas import Limits, QuotaExceeded
from agentjobs.enqueue import (
    EnqueueError,
    InvalidRequest,
    JobErased,
    KeyReused,
    NoTransaction,
    UnknownAgent,
    UnknownTenant,
    enqueue,
)
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.front import Front
from tests.ledger.scene import Scene
from tests.outbox.deliveries import ScriptedDelivery, relay
from tests.world import eventually

PROGRAM = Path(__file__).with_name("enqueueing.py")
CHECKOUT = PROGRAM.parents[2]


@pytest.fixture
async def dsn(scene: Scene, postgres: EmbeddedPostgres) -> str:
    """The database, with a table of somebody else's."""
    await scene.execute("DROP TABLE IF EXISTS orders")
    await scene.execute("CREATE TABLE orders (item text NOT NULL)")
    row = await scene.rows("SELECT current_database() AS name")
    return postgres.dsn(row[0]["name"])


@pytest.fixture
async def stranger(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection as anybody opens it: without our codecs."""
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def order(connection: asyncpg.Connection, **changes: Any) -> str:
    """A row of theirs and a job, in the transaction that is open."""
    await connection.execute("INSERT INTO orders (item) VALUES ('printer')")
    return await enqueue(
        connection, **{"tenant": "acme", "user": "ann", "text": "My printer is on fire", **changes}
    )


async def there(scene: Scene) -> tuple[int, int, int]:
    """How many orders, jobs and outbox rows there are."""
    return await scene.count("orders"), await scene.count("jobs"), await scene.count("outbox")


async def test_row_and_job_are_committed_together(scene: Scene, stranger: asyncpg.Connection) -> None:
    async with stranger.transaction():
        job_id = await order(stranger, budget=Budget(tokens=7), priority=1, deadline_seconds=60)
        meanwhile = await there(scene)

    job = await scene.job(job_id)
    assert meanwhile == (0, 0, 0)
    assert await there(scene) == (1, 1, 1)
    assert (job.user, job.budget_tokens, job.priority, job.agent) == ("ann", 7, 1, "support-triage")
    assert await scene.events(job_id) == ["accepted"]
    assert await scene.rows("SELECT input ->> 'text' AS text, origin FROM jobs") == [
        {"text": "My printer is on fire", "origin": "enqueue"}
    ]


async def test_row_and_job_are_taken_back_together(scene: Scene, stranger: asyncpg.Connection) -> None:
    with pytest.raises(ZeroDivisionError):
        async with stranger.transaction():
            await order(stranger, key="k1")
            raise ZeroDivisionError

    assert await there(scene) == (0, 0, 0)
    assert await scene.count("idempotency_keys") == 0


@pytest.mark.parametrize(("where", "expected"), [("before", (0, 0, 0)), ("after", (1, 1, 1))])
async def test_a_caller_that_is_killed_leaves_both_or_neither(
    scene: Scene, dsn: str, where: str, expected: tuple[int, int, int]
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), dsn, scene.tenant, where,
        stdout=asyncio.subprocess.PIPE, cwd=CHECKOUT, env={"PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    assert program.stdout is not None
    assert await program.stdout.readline() == b"here\n"

    program.kill()
    await program.wait()

    async def is_over() -> bool:
        return not await scene.rows(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND xact_start IS NOT NULL"
        )

    await eventually(is_over, "the server to notice that its client is dead")
    assert await there(scene) == expected


async def test_the_relay_starts_it_after_the_commit_and_not_before(
    scene: Scene, stranger: asyncpg.Connection
) -> None:
    delivery = ScriptedDelivery()
    starts = relay(scene.ledger, delivery)

    async with stranger.transaction():
        job_id = await order(stranger)
        before = await starts.start_once()
    after = await starts.start_once()

    assert (before, after) == (0, 1)
    assert delivery.taken == [job_id]


async def test_nothing_is_accepted_without_a_transaction(scene: Scene, stranger: asyncpg.Connection) -> None:
    with pytest.raises(NoTransaction, match="no transaction is open"):
        await order(stranger)

    assert await scene.count("jobs") == 0


async def test_a_key_makes_one_job_and_is_the_same_key_by_http(
    front: Front, ann: AsyncClient, stranger: asyncpg.Connection
) -> None:
    async with stranger.transaction():
        first = await order(stranger, key="order 1")
    async with stranger.transaction():
        second = await order(stranger, key="order 1")
    body = {"input": {"text": "My printer is on fire"}}

    by_http = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": '"order 1"'})

    assert first == second == by_http.json()["id"]
    assert await front.scene.count("jobs") == 1


async def test_a_budget_means_the_same_by_http(
    front: Front, ann: AsyncClient, stranger: asyncpg.Connection
) -> None:
    body = {"input": {"text": "t"}, "budget": {"tokens": 7, "usd": "0.25"}}
    by_http = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": '"k1"'})

    async with stranger.transaction():
        mine = await enqueue(
            stranger, tenant="acme", user="ann", text="t", key="k1", budget=Budget(tokens=7, usd="0.25")
        )

    assert mine == by_http.json()["id"]


@pytest.mark.parametrize(
    ("refused", "changes"),
    [
        (KeyReused, {"key": "k1", "text": "another text"}),
        (QuotaExceeded, {"limits": Limits(in_flight=1)}),
        (UnknownTenant, {"tenant": "nobody"}),
        (UnknownAgent, {"agent": "nobody"}),
        (InvalidRequest, {"text": " "}),
        (JobErased, {"key": "erased"}),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
async def test_a_refused_job_does_not_end_the_callers_transaction(
    scene: Scene, stranger: asyncpg.Connection, refused: type[Exception], changes: dict[str, Any]
) -> None:
    first = await scene.accept(text="first", key="k1")
    erased = await scene.accept(text="erased", key="erased")
    await scene.ledger.jobs.request_cancel(scene.tenant, erased.id, user=None, actor="ann")
    await scene.ledger.erasures.of_job(scene.tenant, erased.id, actor="adam")

    async with stranger.transaction():
        with pytest.raises(refused):
            await order(stranger, **changes)
        await stranger.execute("INSERT INTO orders (item) VALUES ('another')")

    assert await scene.count("orders") == 2
    assert {row["id"] for row in await scene.rows("SELECT id FROM jobs")} == {first.id, erased.id}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"text": ""}, "input.text"),
        ({"text": "x" * 32_001}, "input.text"),
        ({"text": "a\0b"}, "U\\+0000"),
        ({"text": "\ud800"}, "input.text"),
        ({"text": 7}, "input.text"),
        ({"user": "a b"}, "user"),
        ({"tenant": "a/b"}, "tenant"),
        ({"key": ""}, "key"),
        ({"key": "k" * 256}, "key"),
        ({"key": "k\n"}, "key"),
        ({"priority": 6}, "priority"),
        ({"deadline_seconds": 0}, "deadline_seconds"),
    ],
)
async def test_what_http_would_refuse_is_refused_by_name_and_without_its_value(
    stranger: asyncpg.Connection, changes: dict[str, Any], told: str
) -> None:
    async with stranger.transaction():
        with pytest.raises(InvalidRequest, match=told) as refused:
            await order(stranger, **changes)

    assert "xxx" not in str(refused.value)
    assert isinstance(refused.value, EnqueueError)


async def test_codecs_of_the_callers_own_are_neither_used_nor_changed(
    scene: Scene, stranger: asyncpg.Connection
) -> None:
    def never(_: object) -> str:
        raise AssertionError

    await stranger.set_type_codec("jsonb", encoder=never, decoder=lambda text: f"<{text}>", schema="pg_catalog")

    async with stranger.transaction():
        first = await order(stranger, key="k1")
        second = await order(stranger, key="k1")

    assert first == second
    assert await stranger.fetchval("SELECT '[]'::jsonb") == "<[]>"
    assert json.loads(await scene.ledger.database.pool.fetchval("SELECT input::text FROM jobs")) == {
        "text": "My printer is on fire"
    }


async def test_a_twin_in_another_transaction_is_waited_for(scene: Scene, dsn: str) -> None:
    one, other = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        async with one.transaction():
            first = await order(one, key="k1")

            async def twin() -> str:
                async with other.transaction():
                    return await order(other, key="k1")

            waiting = asyncio.create_task(twin())
            await scene.until_under_way([waiting])
        second = await waiting
    finally:
        await one.close()
        await other.close()

    assert first == second
    assert await there(scene) == (2, 1, 1)
