"""AlertDelivery: one alert, to each of its sinks by itself. A sink that is down for days holds up nobody."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from activities.alerts import DeskWork
from activities.inputs import AlertAt, AlertRef
from workflows.options import HEARTBEAT_TIMEOUT, Options

ALERT_DELIVERY: Final = "AlertDelivery"
ID_PREFIX: Final = "alert-delivery-"

DELIVERY: Final = Options(
    start_to_close_timeout=timedelta(seconds=60),  # a request of 20 s, and the ledger's statements around it
    heartbeat_timeout=HEARTBEAT_TIMEOUT,
    # Ten attempts by the schedule take four days, and more where a sink asks for it. The ledger counts them.
    schedule_to_close_timeout=timedelta(days=14),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10), maximum_attempts=0
    ),
)


@workflow.defn(name=ALERT_DELIVERY)
class AlertDelivery:
    """Workflow id: alert-delivery-<alert>. Begun by the desk, and not ended with it."""

    @workflow.run
    async def run(self, alert: AlertRef) -> None:
        """To all sinks at once."""
        await asyncio.gather(*(self._deliver(alert.alert_id, sink) for sink in alert.sinks))

    async def _deliver(self, alert_id: str, sink: str) -> None:
        try:
            await workflow.execute_activity_method(
                DeskWork.deliver_alert,
                AlertAt(alert_id=alert_id, sink=sink),
                activity_id=f"deliver.{sink}",
                summary=f"to {sink}",
                **DELIVERY,
            )
        except ActivityError:
            # The ledger still has it as waiting: the desk begins it again once it is overdue.
            workflow.logger.error("alert_not_delivered", extra={"alert": alert_id, "sink": sink})
