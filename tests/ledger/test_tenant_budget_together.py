"""A tenant's budget under calls at the same moment: never exceeded, and in the end right to the last token."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest

from agentjobs.domain.budget import Reservation, Usage
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.scene import Scene
from tests.ledger.spending import begins, begun, complete, limit


@pytest.mark.parametrize("unit", ["tokens", "usd"])
async def test_fifty_jobs_at_the_same_moment_never_overspend(
    scene: Scene, postgres: EmbeddedPostgres, unit: str
) -> None:
    allowed = 1_000
    await limit(scene, **{"tokens": allowed} if unit == "tokens" else {"usd": str(allowed)})
    jobs = [(await scene.accept()).id for _ in range(50)]
    over: list[dict[str, Any]] = []
    watching = asyncio.create_task(watch(scene, allowed, unit, over))

    async with several_pools(scene, postgres) as scenes:
        refused = await asyncio.gather(
            *(spend(scenes[number % len(scenes)], job_id, unit, number) for number, job_id in enumerate(jobs))
        )
    watching.cancel()
    looks = (await asyncio.gather(watching, return_exceptions=True))[0]

    row = (await scene.rows(_ACCOUNT))[0]
    assert over == []
    assert isinstance(looks, int) and looks > 3
    assert sum(refused) > 0  # so the limit was met
    assert row["spent"] == row["attempts_spent"]
    assert row["held"] == row["attempts_held"] == 0
    assert allowed * 0.8 < row["spent"] <= allowed  # nearly used up, and not exceeded


async def test_a_budget_may_be_changed_while_calls_are_under_way(scene: Scene) -> None:
    jobs = [(await scene.accept()).id for _ in range(20)]

    await limit(scene, tokens=50)

    async def change() -> None:
        for number in range(1, 15):
            await limit(scene, tokens=50 * number)

    await asyncio.gather(change(), *(spend(scene, job_id, "tokens", number) for number, job_id in enumerate(jobs)))

    row = (await scene.rows(_ACCOUNT))[0]
    assert row["spent"] == row["attempts_spent"] > 0
    assert row["held"] == row["attempts_held"] == 0


async def test_a_call_that_begins_while_the_budget_is_removed_leaves_nothing_behind(scene: Scene) -> None:
    job, other = await scene.accept(), await scene.accept()
    await limit(scene, tokens=100)
    earlier = await begun(scene, job.id)
    async with removing_the_budget(scene):
        beginning = asyncio.create_task(begun(scene, other.id, reserve=Reservation(tokens=5)))
        await scene.until_under_way([beginning])
    await beginning

    await limit(scene, tokens=100)
    await scene.fail(earlier, release=True)

    row = (await scene.rows(_ACCOUNT))[0]
    assert row["held"] == row["attempts_held"] == 5


@asynccontextmanager
async def removing_the_budget(scene: Scene) -> AsyncIterator[None]:
    """Its removal, committed when the block ends."""
    run = scene.ledger.database.run
    async with scene.ledger.database.transaction() as connection:
        await run.lock_tenant(connection, tenant=scene.tenant)
        await run.set_budget(connection, tenant=scene.tenant, tokens=None, usd=None)
        await run.drop_months(connection, tenant=scene.tenant)
        yield


async def spend(scene: Scene, job_id: str, unit: str, number: int) -> int:
    """One job's calls, of which each may cost all of what it holds back; how many were refused."""
    chance, refused = random.Random(number), 0
    for step in range(1, 9):
        most, name = chance.randint(1, 20), f"step-{step}.model"
        attempt_id = await begins(scene, job_id, name, _reserve(unit, most))
        if attempt_id is None:
            refused += 1
        elif chance.random() < 0.2:
            await scene.fail(attempt_id, release=True)
        else:
            await complete(scene, job_id, attempt_id, _usage(unit, chance.randint(0, most)), name)
    return refused


def _reserve(unit: str, amount: int) -> Reservation:
    return Reservation(tokens=amount) if unit == "tokens" else Reservation(usd=Decimal(amount))


def _usage(unit: str, amount: int) -> Usage:
    return Usage(tokens_out=amount) if unit == "tokens" else Usage(usd=Decimal(amount))


async def watch(scene: Scene, allowed: int, unit: str, over: list[dict[str, Any]]) -> int:
    """Look again and again, until cancelled; returns how often."""
    looks = 0
    try:
        while True:
            rows = await scene.rows(f"SELECT {unit} AS spent, {unit}_reserved AS held FROM tenant_months")
            over += [row for row in rows if row["spent"] + row["held"] > allowed]
            looks += 1
    except asyncio.CancelledError:
        return looks


@asynccontextmanager
async def several_pools(scene: Scene, postgres: EmbeddedPostgres) -> AsyncIterator[list[Scene]]:
    """The same ledger over pools of its own, as several workers have them."""
    name: str = await scene.ledger.database.pool.fetchval("SELECT current_database()")
    ledgers = [
        await Ledger.open(postgres.dsn(name), size=8, application_name=f"worker-{number}") for number in range(3)
    ]
    try:
        yield [Scene(ledger) for ledger in ledgers]
    finally:
        for ledger in ledgers:
            await ledger.close()


_ACCOUNT = """
SELECT (SELECT sum(tokens + usd) FROM tenant_months) AS spent,
       (SELECT sum(tokens_reserved + usd_reserved) FROM tenant_months) AS held,
       sum(tokens_in + tokens_out + usd) AS attempts_spent, sum(tokens_reserved + usd_reserved) AS attempts_held
  FROM attempts
"""
