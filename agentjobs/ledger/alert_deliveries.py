"""How far each alert has come on each way, what holds for a way as a whole, and the incidents that were opened."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from agentjobs.domain.alerts import Alert
from agentjobs.ledger.alerts import as_alert
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record


class DeliveryState(StrEnum):
    """Where the delivery of one alert to one sink stands."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    DISABLED = "disabled"


class BegunDelivery(Record):
    """An attempt to deliver."""

    alert: Alert
    delivery: DeliveryState
    attempts: int
    """With this one, which is not counted while the sink is throttled."""

    throttled_seconds: float


class DeliveryRecord(Record):
    """A delivery as it stands."""

    alert_id: str
    sink: str
    state: DeliveryState
    attempts: int
    last_status: int | None
    last_error: str | None
    receipt: str | None
    next_attempt_at: datetime
    delivered_at: datetime | None


class DisabledSink(Record):
    """A sink that asked for nothing more."""

    sink: str
    disabled_at: datetime


class BegunIncident(Record):
    """An incident that is being opened, or is open."""

    first: bool
    begun_seconds: float
    receipt: str | None


class AlertDeliveries:
    """Deliveries of alerts. Each is written by one activity at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, alert_id: str, sink: str) -> BegunDelivery | None:
        """Count an attempt. None: the delivery is over. Its state is `disabled` where the sink is."""
        row = await self._database.run.begin_delivery(self._database.pool, alert_id=alert_id, sink=sink)
        return None if row is None else BegunDelivery.model_validate({**row, "alert": as_alert(dict(row))})

    async def delivered(self, alert_id: str, sink: str, *, status: int | None, receipt: str | None) -> None:
        """The sink has it."""
        await self._database.run.delivered(
            self._database.pool, alert_id=alert_id, sink=sink, status=status, receipt=receipt
        )

    async def failed(
        self,
        alert_id: str,
        sink: str,
        *,
        state: DeliveryState,
        status: int | None,
        error: str,
        wait_seconds: float,
    ) -> None:
        """An attempt failed: another follows (`waiting`), or none. `error`: its kind, never the sink's words."""
        await self._database.run.not_delivered(
            self._database.pool,
            alert_id=alert_id,
            sink=sink,
            state=state.value,
            status=status,
            error=error,
            wait_seconds=wait_seconds,
        )

    async def throttle(self, sink: str, seconds: float) -> None:
        """Send nothing to this sink for so long."""
        await self._database.run.throttle_sink(self._database.pool, sink=sink, seconds=seconds)

    async def disable(self, sink: str) -> None:
        """Send nothing to this sink any more."""
        await self._database.run.disable_sink(self._database.pool, sink=sink)

    async def enable(self, sink: str) -> None:
        """Send to this sink again what comes from now on."""
        await self._database.run.enable_sink(self._database.pool, sink=sink)

    async def disabled(self) -> list[DisabledSink]:
        """The sinks that get nothing."""
        rows = self._database.run.disabled_sinks(self._database.pool)
        return [DisabledSink.model_validate(dict(row)) async for row in rows]

    async def page(self, tenant: str, *, limit: int = 50) -> list[DeliveryRecord]:
        """The tenant's deliveries, latest alert first."""
        rows = self._database.run.list_deliveries(self._database.pool, tenant=tenant, limit=limit)
        return [DeliveryRecord.model_validate(dict(row)) async for row in rows]

    async def begin_incident(self, tenant: str, key: str) -> BegunIncident:
        """Note that an incident of this key is being opened, or read how far it is."""
        row = await self._database.run.begin_incident(self._database.pool, tenant=tenant, key=key)
        return BegunIncident.model_validate(dict(row))

    async def begin_incident_again(self, key: str, *, settled_seconds: float) -> bool:
        """Whether this attempt may open it: of several that have found nothing, one may."""
        return bool(
            await self._database.run.begin_incident_again(
                self._database.pool, key=key, settled_seconds=settled_seconds
            )
        )

    async def release_incident(self, key: str) -> None:
        """The incident was certainly not opened."""
        await self._database.run.release_incident(self._database.pool, key=key)

    async def incident_opened(self, key: str, receipt: str, connection: Connection | None = None) -> None:
        """What the tracker calls it; in the tracker's own transaction where it has one."""
        await self._database.run.incident_opened(connection or self._database.pool, key=key, receipt=receipt)
