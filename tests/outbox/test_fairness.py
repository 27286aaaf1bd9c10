"""Claims: fair over tenants, in order of priority, and exactly under each tenant's running cap."""

import asyncio

import pytest

from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger.outbox import OutboxRow
from agentjobs.outbox.relay import BATCH
from tests.ledger.scene import Scene
from tests.outbox.deliveries import ScriptedDelivery, relay


async def test_one_job_of_a_tenant_need_not_wait_behind_two_hundred_of_another(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("small")
    await _accept_many(scene, 200)
    small = await scene.accept(tenant="small")

    claimed = await _claim(scene, BATCH)

    assert len(claimed) == BATCH
    assert small.id in {row.job_id for row in claimed}


async def test_one_job_of_a_tenant_is_in_the_first_batch_before_two_thousand_of_another(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("small")
    first = await scene.accept()
    await scene.execute(_MORE_LIKE_IT, first.id, 2_000)
    small = await scene.accept(tenant="small")

    claimed = await _claim_and_start(scene, BATCH)

    assert small.id in {row.job_id for row in claimed}
    assert await scene.count("outbox") == 2_001 - BATCH


async def test_tenants_share_a_batch_evenly(scene: Scene) -> None:
    for tenant in ("b", "c"):
        await scene.ledger.identity.create_tenant(tenant)
        await _accept_many(scene, 20, tenant)
    await _accept_many(scene, 20)

    claimed = await _claim(scene, 9)

    assert sorted(row.tenant for row in claimed) == ["acme"] * 3 + ["b"] * 3 + ["c"] * 3


async def test_a_batch_that_one_tenant_cannot_fill_goes_to_the_others(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("small")
    await scene.accept(tenant="small")
    await _accept_many(scene, 20)

    claimed = await _claim(scene, 10)

    assert sorted(row.tenant for row in claimed) == ["acme"] * 9 + ["small"]


async def test_urgent_jobs_of_a_tenant_go_first_and_then_the_oldest(scene: Scene) -> None:
    jobs = [(await scene.accept(priority=priority)).id for priority in (3, 5, 1, 3, 1)]

    claimed = [(await _claim_and_start(scene, 1))[0].job_id for _ in jobs]

    assert claimed == [jobs[2], jobs[4], jobs[0], jobs[3], jobs[1]]


async def test_no_more_jobs_of_a_tenant_run_than_its_cap_allows(scene: Scene) -> None:
    await scene.execute("UPDATE tenants SET running_cap = 3")
    await _accept_many(scene, 10)

    first, second = await _claim_and_start(scene, BATCH), await _claim_and_start(scene, BATCH)

    assert (len(first), len(second)) == (3, 0)


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_job_counts_against_the_cap_until_it_is_over_or_dead(scene: Scene, state: JobState) -> None:
    await scene.execute("UPDATE tenants SET running_cap = 1")
    started, waiting = (await scene.accept()).id, (await scene.accept()).id
    await _claim_and_start(scene, BATCH)
    await scene.move(started, state)

    while_it_lives = await _claim(scene, BATCH)
    await scene.bury(started)
    after_its_death = await _claim(scene, BATCH)

    assert while_it_lives == []
    assert [row.job_id for row in after_its_death] == [waiting]


async def test_the_cap_is_exact_with_relays_at_the_same_moment(scene: Scene) -> None:
    await scene.execute("UPDATE tenants SET running_cap = 5")
    await _accept_many(scene, 40)
    delivery = ScriptedDelivery()
    relays = [relay(scene.ledger, delivery) for _ in range(4)]

    for _ in range(4):
        await asyncio.gather(*(one.start_once() for one in relays))

    assert len(delivery.taken) == len(set(delivery.taken)) == 5


async def test_while_one_relay_claims_starts_another_stands_by(scene: Scene) -> None:
    await _accept_many(scene, 2)
    async with scene.ledger.database.transaction() as connection:
        first = await scene.ledger.outbox.claim_starts(connection, 1)
        second = await _claim(scene, BATCH)

    after = await _claim(scene, BATCH)

    assert (len(first), second, len(after)) == (1, [], 2)


async def test_one_tenants_cap_does_not_hold_another_up(scene: Scene) -> None:
    await scene.execute("UPDATE tenants SET running_cap = 1")
    await scene.ledger.identity.create_tenant("other")
    await _accept_many(scene, 3)
    await _accept_many(scene, 3, "other")

    claimed = await _claim(scene, BATCH)

    assert sorted(row.tenant for row in claimed) == ["acme", "other", "other", "other"]


async def test_a_row_that_was_put_off_does_not_block_those_behind_it(scene: Scene) -> None:
    jobs = [(await scene.accept()).id for _ in range(3)]
    await scene.execute("UPDATE outbox SET available_at = now() + interval '1 hour' WHERE job_id = $1", jobs[0])

    claimed = await _claim(scene, BATCH)

    assert [row.job_id for row in claimed] == jobs[1:]


_MORE_LIKE_IT = """
WITH more AS (
    INSERT INTO jobs (id, tenant, "user", agent, policy_version, origin, input, priority, deadline_seconds,
                      deadline_at)
    SELECT id || '-' || place, tenant, "user", agent, policy_version, origin, input, priority, deadline_seconds,
           deadline_at
      FROM jobs CROSS JOIN generate_series(2, $2) AS place WHERE id = $1
    RETURNING id, tenant
)
INSERT INTO outbox (topic, job_id, tenant) SELECT 'start_job', id, tenant FROM more
"""
"""So many in all."""


async def _accept_many(scene: Scene, number: int, tenant: str = "acme") -> None:
    await asyncio.gather(*(scene.accept(tenant=tenant) for _ in range(number)))


async def _claim(scene: Scene, batch: int) -> list[OutboxRow]:
    async with scene.ledger.database.transaction() as connection:
        return await scene.ledger.outbox.claim_starts(connection, batch)


async def _claim_and_start(scene: Scene, batch: int) -> list[OutboxRow]:
    async with scene.ledger.database.transaction() as connection:
        rows = await scene.ledger.outbox.claim_starts(connection, batch)
        await scene.ledger.outbox.mark_started(connection, [row.id for row in rows])
        return rows
