"""From a job to its tenant's receiver: through the real Temporal, a worker, the relay and its lane of webhooks."""

import asyncio

import pytest
from temporalio.client import Client

from agentjobs.domain.states import JobState
from agentjobs.domain.webhooks import WebhookState
from agentjobs.ledger.ledger import Ledger
from tests.alerts.receiver import Receiver
from tests.ledger.scene import Scene
from tests.webhooks.hooks import Hooks, sending, verified
from tests.world import World, eventually


@pytest.fixture
async def world(ledger: Ledger, temporal: Client) -> World:
    """A tenant on the real server, over this folder's ledger."""
    return await World.made(ledger, temporal)


async def test_a_job_that_dies_and_one_that_succeeds_are_each_told_once(world: World, receiver: Receiver) -> None:
    async with sending() as sender:
        hooks = Hooks(Scene(world.ledger, world.tenant), sender)
        webhook = await hooks.add(receiver.url, tenant=world.tenant)
        sends = asyncio.create_task(hooks.lane.run())
        async with world.running():
            dead, done = await world.submit(user="nobody-with-a-grant"), await world.submit()
            ends = [(await world.until(job_id)).state for job_id in (dead, done)]

            async def told() -> bool:
                return {delivery.state for delivery in await hooks.deliveries(webhook)} == {WebhookState.DELIVERED}

            await eventually(told, "both deliveries")
        sends.cancel()
        await asyncio.gather(sends, return_exceptions=True)

    messages = sorted((verified(one)["type"], verified(one)["data"]["id"]) for one in receiver.received)
    assert ends == [JobState.DEAD, JobState.SUCCEEDED]
    assert messages == [("job.dead", dead), ("job.succeeded", done)]
    assert len(await hooks.deliveries(webhook)) == 2
