"""Webhooks of the tenant `acme`, and how a test makes time pass for their deliveries."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr
from standardwebhooks import Webhook

from agentjobs.domain.webhooks import JOB_EVENTS, EventType
from agentjobs.ledger.webhook_deliveries import WebhookDelivery
from agentjobs.ledger.webhooks import WebhookRecord
from agentjobs.outbox.webhook_deliveries import WebhookLane
from agentjobs.webhooks.addresses import Address
from agentjobs.webhooks.looking_up import LookUp
from agentjobs.webhooks.places import Reach
from agentjobs.webhooks.sending import Sender
from tests.alerts.receiver import OTHER_SECRET, SECRET, Received
from tests.ledger.scene import Scene

__all__ = ["OTHER_SECRET", "SECRET"]


@asynccontextmanager
async def sending(*, private: bool = True, look_up: LookUp | None = None) -> AsyncIterator[Sender]:
    """A sender as the relay has it; `private`: for a trial on this machine."""
    async with aclosing(Sender(Reach.of_tenants(private=private), look_up=look_up)) as sender:
        yield sender


def verified(received: Received, secret: str = SECRET) -> Any:
    """What an independent library reads in it. Raises WebhookVerificationError."""
    return Webhook(secret).verify(received.body, received.headers)


@dataclass
class Hooks:
    """The tenant's webhooks."""

    scene: Scene
    sender: Sender
    chance: float = 0.5
    lane: WebhookLane = field(init=False)

    def __post_init__(self) -> None:
        self.lane = self.another_lane()

    def another_lane(self) -> WebhookLane:
        """As another relay has it."""
        base = "https://jobs.example.org"
        return WebhookLane(self.scene.ledger, self.sender, links_base=base, chance=lambda: self.chance)

    async def add(self, url: str, *types: EventType, tenant: str = "acme", secret: str = SECRET) -> WebhookRecord:
        """A webhook; told of everything, unless types are named."""
        return await self.scene.ledger.webhooks.add(
            tenant,
            url=url,
            types=types or JOB_EVENTS,
            description=None,
            secret=SecretStr(secret),
            actor="adam",
        )

    async def read(self, webhook: WebhookRecord, tenant: str = "acme") -> WebhookRecord:
        """The webhook as it stands."""
        record = await self.scene.ledger.webhooks.read(tenant, webhook.id)
        assert record is not None
        return record

    async def deliveries(self, webhook: WebhookRecord) -> list[WebhookDelivery]:
        """Its deliveries, oldest first."""
        page = await self.scene.ledger.webhook_deliveries.page(webhook.id, before=None, limit=1_000)
        return page[::-1]

    async def only(self, webhook: WebhookRecord) -> WebhookDelivery:
        """Its one delivery."""
        (delivery,) = await self.deliveries(webhook)
        return delivery

    async def attempt(self) -> float | None:
        """One attempt, whatever the time; the seconds until the next one."""
        await self.scene.execute("UPDATE webhook_deliveries SET next_attempt_at = now() WHERE state = 'waiting'")
        await self.scene.execute("UPDATE webhooks SET throttled_until = NULL")
        await self.lane.run_once()
        (row,) = await self.scene.rows(
            "SELECT extract(epoch FROM min(next_attempt_at) - now())::float AS seconds FROM webhook_deliveries"
        )
        seconds: float | None = row["seconds"]
        return seconds

    async def audited(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Actor, deed and details, in order."""
        rows = await self.scene.rows("SELECT actor, action, details FROM audit_log ORDER BY id")
        return [(row["actor"], row["action"], _plain(row["details"])) for row in rows]


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return plain


def leading_to(*addresses: Address) -> LookUp:
    """A look-up that always finds these."""

    async def look_up(host: str, port: int) -> list[Address]:
        return list(addresses)

    return look_up
