"""What happens to a job is told together with it: to the tenant's own webhooks that want to hear of it, once."""

import asyncio

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.domain.webhooks import JOB_EVENTS, DisabledBecause, EventType, WebhookState
from tests.webhooks.hooks import Hooks

URL = "https://hooks.example.org/"
ENDS = [JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED]


@pytest.mark.parametrize("state", ENDS)
async def test_each_end_is_told_with_ids_and_codes(hooks: Hooks, state: JobState) -> None:
    webhook = await hooks.add(URL)
    job_id = (await hooks.scene.accept(text="a secret of mine")).id
    if state is JobState.DEAD:
        await hooks.scene.bury(job_id)
    else:
        await hooks.scene.move(job_id, JobState.RUNNING)
        await hooks.scene.ledger.outcomes.finish(job_id, state)

    delivery = await hooks.only(webhook)

    (row,) = await hooks.scene.rows("SELECT data::text AS text FROM webhook_deliveries")
    assert (delivery.type, delivery.job_id, delivery.state) == (f"job.{state}", job_id, WebhookState.WAITING)
    assert "secret" not in row["text"]
    assert "no such grant" not in row["text"]  # the message of the death


async def test_a_death_says_its_reason_and_how_manyth_it_is(hooks: Hooks) -> None:
    await hooks.add(URL)
    job_id = await hooks.scene.dead()
    await hooks.scene.bury(job_id, generation=1, reason=Category.TERMINATED)  # before the redrive took effect

    rows = await hooks.scene.rows(
        "SELECT data ->> 'reason' AS reason, data ->> 'generation' AS generation FROM webhook_deliveries "
        "ORDER BY data ->> 'generation'"
    )

    assert [(row["reason"], row["generation"]) for row in rows] == [("access_denied", "1"), ("terminated", "2")]


async def test_a_discard_is_told_after_the_death(hooks: Hooks) -> None:
    webhook = await hooks.add(URL)
    job_id = await hooks.scene.dead()

    await hooks.scene.ledger.outcomes.finish(job_id, JobState.DISCARDED)

    told = sorted(delivery.type for delivery in await hooks.deliveries(webhook))
    assert told == [EventType.DEAD, EventType.DISCARDED]


async def test_a_change_that_is_no_end_is_not_told(hooks: Hooks) -> None:
    webhook = await hooks.add(URL)
    for state in (JobState.RUNNING, JobState.RETRY_WAIT, JobState.WAITING_APPROVAL):
        await hooks.scene.move((await hooks.scene.accept()).id, state)
    job_id = await hooks.scene.dead()

    for _ in range(2):
        await hooks.scene.bury(job_id)  # an attempt to record it again
        await hooks.scene.execute("UPDATE jobs SET updated_at = now(), state = state WHERE id = $1", job_id)

    assert [delivery.type for delivery in await hooks.deliveries(webhook)] == [EventType.DEAD]


async def test_only_the_tenants_own_webhooks_that_want_it_and_are_enabled_are_told(hooks: Hooks) -> None:
    await hooks.scene.ledger.identity.create_tenant("globex")
    other_tenant = await hooks.add(URL, tenant="globex")
    other_type = await hooks.add(URL, EventType.SUCCEEDED, EventType.CANCELLED)
    disabled = await hooks.add(URL)
    await hooks.scene.ledger.webhooks.disable(disabled.id, DisabledBecause.GONE)
    both = [await hooks.add(URL, EventType.DEAD), await hooks.add(URL, *JOB_EVENTS)]

    await hooks.scene.dead()

    counts = [len(await hooks.deliveries(webhook)) for webhook in (other_tenant, other_type, disabled, *both)]
    assert counts == [0, 0, 0, 1, 1]


async def test_a_change_that_is_taken_back_is_not_told(hooks: Hooks) -> None:
    webhook = await hooks.add(URL)
    job_id = (await hooks.scene.accept()).id

    with pytest.raises(ZeroDivisionError):
        async with hooks.scene.ledger.database.transaction() as connection:
            await connection.execute(
                "UPDATE jobs SET state = 'cancelled', finalized_at = now() WHERE id = $1", job_id
            )
            raise ZeroDivisionError

    assert await hooks.deliveries(webhook) == []


async def test_a_job_ends_although_its_webhook_is_removed_at_the_same_moment(hooks: Hooks) -> None:
    webhook = await hooks.add(URL)
    stays = await hooks.add(URL)
    job_id = (await hooks.scene.accept()).id
    async with hooks.scene.ledger.database.transaction() as connection:
        await connection.execute("DELETE FROM webhooks WHERE id = $1", webhook.id)
        dying = asyncio.create_task(hooks.scene.bury(job_id))
        await hooks.scene.until_under_way([dying])

    state = await dying

    assert state is JobState.DEAD
    assert len(await hooks.deliveries(stays)) == 1
    assert await hooks.scene.count("webhook_deliveries") == 1
