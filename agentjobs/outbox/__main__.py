"""The relay as a process: `python -m agentjobs.outbox`."""

import asyncio
import os
import sys
from contextlib import aclosing

import asyncpg_listen
import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import CHANNEL
from agentjobs.outbox.delivery import Delivery
from agentjobs.outbox.erasures import ErasureSweep
from agentjobs.outbox.measures import RelayMeasures
from agentjobs.outbox.reconciler import Reconciler
from agentjobs.outbox.redrive_calls import RedriveCalls
from agentjobs.outbox.relay import POLL_SECONDS, Relay
from agentjobs.outbox.retention import RetentionSweep
from agentjobs.outbox.takeover import Takeover
from agentjobs.outbox.wait_notices import WaitNotices
from agentjobs.outbox.watchdog import Watchdog
from agentjobs.outbox.webhook_deliveries import WebhookLane
from agentjobs.outbox.workflow_deletion import WorkflowDeletion
from agentjobs.processes import run_until_signalled, started
from agentjobs.settings import Settings
from agentjobs.temporal import connect, meter_of, register_search_attributes
from agentjobs.webhooks.places import Reach
from agentjobs.webhooks.sending import Sender

log = structlog.get_logger()

POOL_SIZE = 8
"""Two lanes, one for burying, one for the takeover, two for the watchdog, and spare ones."""


async def serve(settings: Settings) -> None:
    """Relay until cancelled."""
    ledger = await Ledger.open(settings.dsn, size=POOL_SIZE, application_name="agentjobs-relay")
    try:
        client = await connect(settings.metrics_address)
        measures = RelayMeasures(meter_of(client))
        await _registered(client)
        delivery = Delivery(client, ledger, built_in_agents(), settings.task_queue)
        relay = Relay(ledger, delivery, Failpoints.parse(settings.failpoints), measures)
        redrive_calls = RedriveCalls(ledger, client, settings.task_queue)
        sender = Sender(Reach.of_tenants(private=settings.webhooks_private))
        log.info("relay_started")
        async with aclosing(sender), asyncio.TaskGroup() as tasks:
            tasks.create_task(relay.run())
            tasks.create_task(redrive_calls.run())
            tasks.create_task(_listen(settings.dsn, relay, redrive_calls))
            tasks.create_task(Takeover(ledger, client, measures).run())
            tasks.create_task(WaitNotices(ledger, client).run())
            tasks.create_task(Reconciler(ledger, client, settings.task_queue).run())
            tasks.create_task(Watchdog(ledger, client, settings.task_queue).run())
            webhooks = WebhookLane(ledger, sender, links_base=settings.alert_links_url, measures=measures)
            tasks.create_task(webhooks.run())
            tasks.create_task(RetentionSweep(ledger, settings.retention).run())
            tasks.create_task(ErasureSweep(ledger).run())
            tasks.create_task(WorkflowDeletion(ledger, client).run())
    finally:
        await ledger.close()


async def _registered(client: Client) -> None:
    try:
        await register_search_attributes(client)
    except RPCError as error:
        # They may be there all the same; if not, starts are put off, and the log says why.
        log.warning("search_attributes_not_registered", status=error.status.name)


async def _listen(dsn: str, relay: Relay, redrive_calls: RedriveCalls) -> None:
    async def heard(_: asyncpg_listen.NotificationOrTimeout) -> None:
        relay.wake()
        redrive_calls.wake()

    # Its own connection, outside the pool: a listener of a pooled connection is lost when that goes back.
    listener = asyncpg_listen.NotificationListener(
        asyncpg_listen.connect_func(dsn, server_settings={"application_name": "agentjobs-relay-listen"}),
        reconnect_delay=POLL_SECONDS,
    )
    await listener.run({CHANNEL: heard}, policy=asyncpg_listen.ListenPolicy.LAST, notification_timeout=10)


if __name__ == "__main__":
    # The Temporal client may crash the interpreter while it is torn down, and an exit code must not lie
    # (sdk-python 300): everything is closed and flushed by now.
    code = started("relay", lambda settings: run_until_signalled(serve(settings)))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
