"""Quotas: what is admitted is the limit exactly, and what is in use is what there is."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from agentjobs.domain.quotas import LOOK_AGAIN_SECONDS, NO_LIMITS, Limits, Quota, QuotaExceeded, QuotaUse
from agentjobs.domain.states import FINAL, LIVE, JobState
from agentjobs.ledger.database import Connection
from agentjobs.ledger.jobs import Acceptance, KeyReused
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.scene import Scene, submission

FIVE = Limits(in_flight=5)
ONE = Limits(in_flight=1)


async def test_at_the_limit_a_job_is_refused_with_the_numbers(scene: Scene) -> None:
    for _ in range(5):
        await _accept(scene, FIVE)

    with pytest.raises(QuotaExceeded) as refused:
        await _accept(scene, FIVE)

    assert refused.value.use == QuotaUse(quota=Quota.IN_FLIGHT, limit=5, in_use=5)
    assert refused.value.wait_seconds == LOOK_AGAIN_SECONDS
    assert await scene.count("jobs") == 5


async def test_a_refusal_is_no_error_to_the_database(scene: Scene, postgres: EmbeddedPostgres) -> None:
    log = postgres._logs / "postgres.log"
    await _accept(scene, ONE)
    before = log.read_text("utf-8")

    for limits in (ONE, Limits(per_minute=1), Limits(queue_length=1)):
        with pytest.raises(QuotaExceeded):
            await _accept(scene, limits, key="mail-4711")

    with pytest.raises(asyncpg.PostgresError):
        await scene.execute("SELECT 1 / 0")
    said = log.read_text("utf-8").removeprefix(before)
    assert "division by zero" in said
    assert said.count("ERROR") == 1
    assert await scene.count("idempotency_keys") == 0


@pytest.mark.parametrize(
    "limits", [FIVE, Limits(per_minute=5), Limits(queue_length=5)], ids=["in flight", "minute", "queue"]
)
async def test_a_hundred_at_once_are_admitted_up_to_the_limit_exactly(scene: Scene, limits: Limits) -> None:
    answers = await asyncio.gather(*(_accept(scene, limits) for _ in range(100)), return_exceptions=True)

    assert sum(isinstance(answer, Acceptance) for answer in answers) == 5
    assert sum(isinstance(answer, QuotaExceeded) for answer in answers) == 95
    assert [await scene.count(table) for table in ("jobs", "outbox", "job_events")] == [5, 5, 5]


async def test_the_tenants_queue_is_of_all_its_users_and_of_no_other_tenant(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")
    limits = Limits(queue_length=2)
    await _accept(scene, limits, user="ann")
    await _accept(scene, limits, user="bob")

    with pytest.raises(QuotaExceeded) as refused:
        await _accept(scene, limits, user="cem")

    assert refused.value.use == QuotaUse(quota=Quota.QUEUE_LENGTH, limit=2, in_use=2)
    assert await _accept(scene, limits, tenant="other")


async def test_a_started_job_has_left_the_queue(scene: Scene) -> None:
    limits = Limits(queue_length=1)
    await _accept(scene, limits)
    await _start_all(scene)

    assert await _accept(scene, limits)


async def test_a_pending_job_that_is_cancelled_has_left_the_queue(scene: Scene) -> None:
    limits = Limits(queue_length=1, in_flight=1)
    job = await _accept(scene, limits)
    await scene.ledger.jobs.request_cancel("acme", job.id, user=None, actor="ann")

    assert await _accept(scene, limits)


async def test_a_users_limit_is_its_own(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")
    await _accept(scene, ONE, user="ann")

    assert await _accept(scene, ONE, user="bob")
    assert await _accept(scene, ONE, user="ann", tenant="other")


async def test_within_a_minute_it_waits_until_the_first_one_is_a_minute_old(scene: Scene) -> None:
    limits = Limits(per_minute=2)
    first, _ = await _accept(scene, limits), await _accept(scene, limits)
    await _made_older(scene, first.id, 40)

    with pytest.raises(QuotaExceeded) as refused:
        await _accept(scene, limits)
    await _made_older(scene, first.id, 21)
    later = await _accept(scene, limits)

    assert refused.value.use == QuotaUse(quota=Quota.PER_MINUTE, limit=2, in_use=2)
    assert LOOK_AGAIN_SECONDS < refused.value.wait_seconds <= 20
    assert later.quotas == (QuotaUse(quota=Quota.PER_MINUTE, limit=2, in_use=2),)


async def test_a_minute_counts_what_was_accepted_and_not_what_is_still_there(scene: Scene) -> None:
    limits = Limits(per_minute=1)
    job = await _accept(scene, limits)
    await scene.move(job.id, JobState.SUCCEEDED)

    with pytest.raises(QuotaExceeded):
        await _accept(scene, limits)


@pytest.mark.parametrize("state", sorted(JobState))
async def test_a_slot_is_held_by_what_is_neither_over_nor_dead(scene: Scene, state: JobState) -> None:
    job = await _accept(scene, ONE)
    await _start_all(scene)
    await scene.move(job.id, state)

    if state in LIVE:
        with pytest.raises(QuotaExceeded):
            await _accept(scene, ONE)
    else:
        assert state in FINAL or state is JobState.DEAD
        assert await _accept(scene, ONE)


async def test_a_redrive_takes_a_slot_and_is_not_refused(scene: Scene) -> None:
    job = await _accept(scene, ONE)
    await scene.move(job.id, JobState.DEAD)
    await _accept(scene, ONE)

    await scene.set_state(job.id, JobState.RUNNING)

    record = await scene.ledger.quotas.read("acme", "ann", ONE)
    assert record is not None
    assert QuotaUse(quota=Quota.IN_FLIGHT, limit=1, in_use=2) in record.quotas
    with pytest.raises(QuotaExceeded):
        await _accept(scene, ONE)


async def test_fifty_at_once_with_one_key_take_one_slot_the_last(scene: Scene) -> None:
    answers = await asyncio.gather(*(_accept(scene, ONE, key="k1") for _ in range(50)))

    assert len({job.id for job in answers}) == 1
    assert {job.quotas for job in answers} == {(QuotaUse(quota=Quota.IN_FLIGHT, limit=1, in_use=1),)}
    with pytest.raises(QuotaExceeded):
        await _accept(scene, ONE, key="k2")


async def test_a_refused_request_does_not_use_its_key_up(scene: Scene) -> None:
    job = await _accept(scene, ONE)
    with pytest.raises(QuotaExceeded):
        await _accept(scene, ONE, key="k1")
    keys_then = await scene.count("idempotency_keys")
    await scene.move(job.id, JobState.SUCCEEDED)

    accepted = await _accept(scene, ONE, key="k1", text="another text")

    assert (keys_then, accepted.state) == (0, JobState.PENDING)


async def test_a_key_that_belongs_to_another_request_is_told_also_at_the_limit(scene: Scene) -> None:
    await _accept(scene, ONE, key="k1")

    with pytest.raises(KeyReused):
        await _accept(scene, ONE, key="k1", text="another text")


@pytest.mark.parametrize(
    ("own", "admitted"), [("NULL", 1), ("3", 3), ("0", 5)], ids=["installation's", "own", "no limit"]
)
async def test_a_tenants_own_limit_goes_before_the_installations(scene: Scene, own: str, admitted: int) -> None:
    await scene.execute(f"UPDATE tenants SET quota_in_flight = {own}")

    answers = await asyncio.gather(*(_accept(scene, ONE) for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(answer, Acceptance) for answer in answers) == admitted


async def test_a_tenants_own_limit_holds_where_the_installation_has_none(scene: Scene) -> None:
    await scene.execute("UPDATE tenants SET quota_queue_length = 1")
    await _accept(scene, NO_LIMITS)

    with pytest.raises(QuotaExceeded):
        await _accept(scene, NO_LIMITS)


async def test_a_refusal_leaves_the_callers_transaction_usable(scene: Scene) -> None:
    async with scene.ledger.database.transaction() as connection:
        await _accept(scene, ONE, connection)
        with pytest.raises(QuotaExceeded):
            await _accept(scene, ONE, connection)
        await connection.execute("INSERT INTO tenants (id) VALUES ('after')")

    assert (await scene.count("jobs"), await scene.count("tenants")) == (1, 2)


async def test_who_waits_for_an_open_transaction_counts_what_it_committed(scene: Scene) -> None:
    async with scene.ledger.database.transaction() as connection:
        await _accept(scene, ONE, connection)
        beside = asyncio.create_task(_accept(scene, ONE))
        await scene.until_under_way([beside])

    with pytest.raises(QuotaExceeded):
        await beside


async def test_who_waits_for_an_open_transaction_is_let_in_when_it_is_rolled_back(scene: Scene) -> None:
    class ChangedMyMindError(Exception):
        """The caller's own reason."""

    with pytest.raises(ChangedMyMindError):
        async with scene.ledger.database.transaction() as connection:
            await _accept(scene, ONE, connection)
            beside = asyncio.create_task(_accept(scene, ONE))
            await scene.until_under_way([beside])
            raise ChangedMyMindError

    assert (await beside).quotas == (QuotaUse(quota=Quota.IN_FLIGHT, limit=1, in_use=1),)


async def test_far_below_every_limit_nobody_waits(scene: Scene) -> None:
    limits = Limits(in_flight=1_000, per_minute=1_000, queue_length=1_000)
    async with scene.ledger.database.transaction() as connection:
        await _accept(scene, limits, connection)
        beside = await _accept(scene, limits)

    assert {use.in_use for use in beside.quotas} == {1}


async def test_near_a_high_limit_they_go_one_after_the_other(scene: Scene) -> None:
    connections = int(await scene.ledger.database.pool.fetchval("SHOW max_connections"))
    limits = Limits(queue_length=connections + 1)
    await _many(scene, connections)
    async with scene.ledger.database.transaction() as connection:
        await _accept(scene, limits, connection)
        beside = asyncio.create_task(_accept(scene, limits, user="bob"))
        await scene.until_under_way([beside])
        waits = not beside.done()

    with pytest.raises(QuotaExceeded):
        await beside
    assert waits


async def test_an_open_transaction_is_waited_for_only_as_long_as_the_session_waits_for_locks(scene: Scene) -> None:
    async with scene.ledger.database.transaction() as first, scene.ledger.database.transaction() as second:
        await _accept(scene, FIVE, first)
        await second.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await _accept(scene, FIVE, second)
        still_usable = await second.fetchval("SELECT 1")

    assert (still_usable, await scene.count("jobs")) == (1, 1)


async def _accept(
    scene: Scene, limits: Limits, connection: Connection | None = None, *, tenant: str = "acme", **changes: object
) -> Acceptance:
    return await scene.ledger.jobs.accept(submission(tenant, **changes), connection, installation=limits)


async def _start_all(scene: Scene) -> None:
    async with scene.ledger.database.transaction() as connection:
        rows = await scene.ledger.outbox.claim_starts(connection, 100)
        await scene.ledger.outbox.mark_started(connection, [row.id for row in rows])


async def _made_older(scene: Scene, job_id: str, seconds: int) -> None:
    await scene.execute(
        "UPDATE jobs SET created_at = created_at - make_interval(secs => $2) WHERE id = $1", job_id, float(seconds)
    )


async def _many(scene: Scene, number: int) -> None:
    """So many jobs that wait for their start, at once."""
    job = await scene.accept()
    await scene.execute(
        'INSERT INTO jobs (id, tenant, "user", agent, policy_version, origin, input, priority, deadline_seconds, '
        'deadline_at) SELECT id || place, tenant, "user", agent, policy_version, origin, input, priority, '
        "deadline_seconds, deadline_at FROM jobs, generate_series(2, $2) place WHERE id = $1",
        job.id,
        number,
    )
