"""Acceptances that commit at the same time do not wait for each other's NOTIFY: one wakes the relay for all."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from agentjobs.ledger.outbox import CHANNEL
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.scene import Scene, submission

RING = "SELECT pg_try_advisory_xact_lock(24939, 2)"
"""As an acceptance does that notifies."""

LAST = "all is said"

Heard = asyncio.Queue[str]


@pytest.fixture
async def heard(scene: Scene, postgres: EmbeddedPostgres) -> AsyncIterator[Heard]:
    """The payload of each notification, one for a transaction that notified."""
    words: Heard = asyncio.Queue()
    database = await scene.ledger.database.pool.fetchval("SELECT current_database()")
    listener = await asyncpg.connect(postgres.dsn(database))
    await listener.add_listener(CHANNEL, lambda *notice: words.put_nowait(notice[3]))
    yield words
    await listener.close()


async def until_all_is_heard(scene: Scene, heard: Heard) -> int:
    """How many words came before the one that is sent by this."""
    await scene.execute(f"NOTIFY {CHANNEL}, '{LAST}'")  # words come in the order of commits
    count = 0
    async with asyncio.timeout(5):
        while await heard.get() != LAST:
            count += 1
    return count


async def test_an_acceptance_beside_one_that_notifies_does_not(scene: Scene, heard: Heard) -> None:
    async with scene.ledger.database.transaction() as connection:
        await connection.execute(RING)
        await scene.accept()
        beside = await until_all_is_heard(scene, heard)

    await scene.accept()

    assert (beside, await until_all_is_heard(scene, heard)) == (0, 1)


async def test_within_a_callers_own_transaction_an_acceptance_notifies_and_silences_nobody(
    scene: Scene, heard: Heard
) -> None:
    async with scene.ledger.database.transaction() as connection:
        await scene.ledger.jobs.accept(submission(scene.tenant), connection)
        await scene.accept()
        while_it_is_open = await until_all_is_heard(scene, heard)

    assert (while_it_is_open, await until_all_is_heard(scene, heard)) == (1, 1)
