"""What webhooks are still to be told, and have been. Written by a trigger together with the job's state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import SecretStr

from agentjobs.domain.webhooks import (
    FAILED_DELIVERIES,
    FAILING_FOR,
    DisabledBecause,
    EventType,
    Miss,
    WebhookState,
)
from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record
from agentjobs.ledger.webhooks import WebhookDisabled, Webhooks

KEPT_FOR = timedelta(days=30)
PRUNED_AT_ONCE = 1_000
"""Rows a statement: some ten milliseconds."""


class StillTesting(Exception):
    """An earlier test has not come to its end: see what becomes of it."""


class WebhookDelivery(Record):
    """A delivery as it stands."""

    id: str
    type: EventType
    job_id: str | None
    state: WebhookState
    attempts: int
    last_status: int | None
    last_error: Miss | None
    next_attempt_at: datetime | None
    created_at: datetime
    delivered_at: datetime | None


class ClaimedDelivery(Record):
    """A delivery that this relay is to send now."""

    id: str
    webhook_id: str
    type: EventType
    data: dict[str, Any]
    created_at: datetime
    attempts: int
    """With this one: its number, by which a late word about it is told from a later attempt's."""

    tries: int
    """With this one, since the latest replay."""

    claimed_at: datetime
    """By the database's clock."""

    url: SecretStr
    secret: SecretStr
    old_secret: SecretStr | None

    tenant: str
    job_id: str | None
    trace_id: str | None
    trace_parent: str | None
    trace_sampled: bool | None
    started_at: datetime | None
    """Of the job, if it is about one."""

    @property
    def secrets(self) -> SecretStr:
        """All that sign now."""
        known = (self.secret, self.old_secret)
        return SecretStr(" ".join(secret.get_secret_value() for secret in known if secret is not None))


class WebhookDeliveries:
    """Deliveries of all tenants. A relay claims one, sends it outside of any transaction, and says what came."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._webhooks = Webhooks(database)

    async def claim(
        self, batch: int, *, each: int, busy: Mapping[str, int], lease_seconds: float
    ) -> list[ClaimedDelivery]:
        """Up to `batch` due deliveries, and no more than `each` of a webhook with those that are `busy` already.

        Another relay may claim them again when the lease is over and nothing was said of them.
        """
        rows = self._database.run.claim_webhook_deliveries(
            self._database.pool, batch=batch, each=each, busy=dict(busy), lease_seconds=lease_seconds
        )
        return [ClaimedDelivery.model_validate(dict(row)) async for row in rows]

    async def delivered(self, claimed: ClaimedDelivery, *, status: int) -> None:
        """The receiver has it."""
        await self._database.run.webhook_delivered(
            self._database.pool,
            id=claimed.id,
            webhook_id=claimed.webhook_id,
            attempt=claimed.attempts,
            status=status,
        )

    async def not_delivered(
        self,
        claimed: ClaimedDelivery,
        *,
        error: Miss,
        status: int | None,
        wait_seconds: float | None,
        throttle_seconds: float,
        is_gone: bool,
    ) -> DisabledBecause | None:
        """An attempt failed: another follows after the wait, or (None) none.

        Returns why the webhook is disabled by this, if it is.
        """
        async with self._database.transaction() as connection:
            standing = await self._database.run.webhook_not_delivered(
                connection,
                id=claimed.id,
                webhook_id=claimed.webhook_id,
                attempt=claimed.attempts,
                error=error.value,
                status=status,
                wait_seconds=wait_seconds,
                throttle_seconds=throttle_seconds,
            )
            because = None if standing is None else _reason_to_disable(standing, is_gone=is_gone)
            if because is None or not await self._webhooks.disable(claimed.webhook_id, because, connection):
                return None
        return because

    async def add_test(self, tenant: str, webhook_id: str, *, actor: str) -> WebhookDelivery | None:
        """A test to be sent; None when there is no such webhook. Raises WebhookDisabled and StillTesting."""
        row = await self._database.run.add_webhook_test(
            self._database.pool, tenant=tenant, webhook_id=webhook_id, actor=actor
        )
        if row is None and await self._is_enabled(tenant, webhook_id):
            raise StillTesting
        return _delivery(row)

    async def replay(
        self, tenant: str, webhook_id: str, delivery_id: str, *, actor: str
    ) -> WebhookDelivery | None:
        """To be sent once more; None when there is no such delivery. Raises WebhookDisabled."""
        row = await self._database.run.replay_webhook_delivery(
            self._database.pool, tenant=tenant, webhook_id=webhook_id, id=delivery_id, actor=actor
        )
        if row is None:
            await self._is_enabled(tenant, webhook_id)
        return _delivery(row)

    async def page(
        self, webhook_id: str, *, before: tuple[datetime, str] | None, limit: int
    ) -> list[WebhookDelivery]:
        """Newest first; `before` is (created_at, id) of the last one of the page before."""
        before_at, before_id = before or (None, None)
        rows = self._database.run.list_webhook_deliveries(
            self._database.pool, webhook_id=webhook_id, before_at=before_at, before_id=before_id, limit=limit
        )
        return [WebhookDelivery.model_validate(dict(row)) async for row in rows]

    async def prune(self, *, age: timedelta = KEPT_FOR, limit: int = PRUNED_AT_ONCE) -> int:
        """Delete up to `limit` deliveries that are over and older, and secrets that sign no more.

        Returns how many deliveries: as many as `limit` means that there may be more.
        """
        await self._database.run.forget_old_secrets(self._database.pool)
        pruned: int = await self._database.run.prune_webhook_deliveries(self._database.pool, age=age, limit=limit)
        return pruned

    async def _is_enabled(self, tenant: str, webhook_id: str) -> bool:
        webhook = await self._webhooks.read(tenant, webhook_id)
        if webhook is not None and webhook.disabled_at is not None:
            raise WebhookDisabled
        return webhook is not None


def _reason_to_disable(standing: Mapping[str, Any], *, is_gone: bool) -> DisabledBecause | None:
    if is_gone:
        return DisabledBecause.GONE
    hopeless = standing["failed_count"] >= FAILED_DELIVERIES and standing["failing_for"] >= FAILING_FOR
    return DisabledBecause.FAILING if hopeless else None


def _delivery(row: Mapping[str, Any] | None) -> WebhookDelivery | None:
    return None if row is None else WebhookDelivery.model_validate(dict(row))
