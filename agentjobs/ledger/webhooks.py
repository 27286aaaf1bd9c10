"""A tenant's webhooks: where its events go, and which secrets sign them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import SecretStr

from agentjobs.domain.webhooks import WEBHOOKS_LIMIT, DisabledBecause, EventType
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record

RELAY = "relay"
"""Who disables webhooks, in the audit log."""


class TooManyWebhooks(Exception):
    """The tenant has as many as it may: remove one first."""


class WebhookDisabled(Exception):
    """The webhook gets nothing: enable it first."""


class WebhookRecord(Record):
    """A webhook without its secrets."""

    id: str
    url: str
    types: tuple[EventType, ...]
    description: str | None
    created_by: str
    created_at: datetime
    old_secret_until: datetime | None
    throttled_until: datetime | None
    failing_since: datetime | None
    failed_count: int
    disabled_at: datetime | None
    disabled_because: DisabledBecause | None


class Webhooks:
    """Webhooks of tenants. Secrets go in, and come out only to sign (webhook_deliveries.py)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        tenant: str,
        *,
        url: str,
        types: tuple[EventType, ...],
        description: str | None,
        secret: SecretStr,
        actor: str,
    ) -> WebhookRecord:
        """A new webhook. Raises TooManyWebhooks."""
        async with self._database.transaction() as connection:
            await self._database.run.lock_tenant(connection, tenant=tenant)
            if await self._database.run.count_webhooks(connection, tenant=tenant) >= WEBHOOKS_LIMIT:
                raise TooManyWebhooks
            row = await self._database.run.add_webhook(
                connection,
                id=str(uuid.uuid4()),
                tenant=tenant,
                url=url,
                types=list(types),
                description=description,
                secret=secret.get_secret_value(),
                created_by=actor,
            )
        return WebhookRecord.model_validate(dict(row))

    async def all(self, tenant: str) -> list[WebhookRecord]:
        """The tenant's webhooks, oldest first."""
        rows = self._database.run.list_webhooks(self._database.pool, tenant=tenant)
        return [WebhookRecord.model_validate(dict(row)) async for row in rows]

    async def read(self, tenant: str, webhook_id: str) -> WebhookRecord | None:
        """One of the tenant's webhooks."""
        return _record(await self._database.run.read_webhook(self._database.pool, tenant=tenant, id=webhook_id))

    async def remove(self, tenant: str, webhook_id: str, *, actor: str) -> bool:
        """Take it away with its deliveries; False when there is none."""
        return bool(
            await self._database.run.remove_webhook(self._database.pool, tenant=tenant, id=webhook_id, actor=actor)
        )

    async def enable(self, tenant: str, webhook_id: str, *, actor: str) -> WebhookRecord | None:
        """It gets again what happens from now on."""
        return _record(
            await self._database.run.enable_webhook(self._database.pool, tenant=tenant, id=webhook_id, actor=actor)
        )

    async def disable(
        self, webhook_id: str, because: DisabledBecause, connection: Connection | None = None
    ) -> bool:
        """It gets nothing any more, and what waits for it has failed. True when it was enabled."""
        return bool(
            await self._database.run.disable_webhook(
                connection or self._database.pool, id=webhook_id, because=because.value, actor=RELAY
            )
        )

    async def rotate_secret(
        self, tenant: str, webhook_id: str, secret: SecretStr, *, overlap_seconds: int, actor: str
    ) -> WebhookRecord | None:
        """The new secret signs from now on; the one so far signs too, for so long."""
        return _record(
            await self._database.run.rotate_webhook_secret(
                self._database.pool,
                tenant=tenant,
                id=webhook_id,
                secret=secret.get_secret_value(),
                overlap_seconds=overlap_seconds,
                actor=actor,
            )
        )


def _record(row: Mapping[str, Any] | None) -> WebhookRecord | None:
    return None if row is None else WebhookRecord.model_validate(dict(row))
