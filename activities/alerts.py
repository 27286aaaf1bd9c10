"""The desk's work: deaths told, letters looked at, alerts delivered. Each may be repeated; the ledger knows what
is done, so that a repetition tells nobody a second time (a crash between the telling and its record: twice).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import chance, judged
from activities.heartbeat import heartbeating
from activities.inputs import AlertAt, AlertRef, DeathNotice, Deaths, DeskDone, DeskRef, OneDeath
from agentjobs.alerts.message import write_to
from agentjobs.alerts.sink import NotTaken, Refusal, Sink
from agentjobs.domain.alerts import AgePolicy, AlertKind, by_reason, grouped
from agentjobs.domain.webhooks import wait_after
from agentjobs.ledger.alert_deliveries import BegunDelivery, DeliveryState
from agentjobs.ledger.alerts import OVERDUE_SECONDS
from agentjobs.ledger.dead_letters import NotOpen
from agentjobs.ledger.ledger import Ledger

log = structlog.get_logger()

RETENTION: Final = "retention"
"""The actor of a discard by policy."""

UNKNOWN_SINK: Final = "no sink of this name is configured"


class DeskWork:
    """What the desks of all tenants have done here."""

    def __init__(self, ledger: Ledger, sinks: Sequence[Sink], ages: AgePolicy) -> None:
        self._ledger = ledger
        self._sinks = {sink.name: sink for sink in sinks}
        self._ages = ages

    @activity.defn
    async def raise_alert(self, death: OneDeath) -> DeskDone:
        """Tell of one death, as a desk does that was never told in batches."""
        with judged():
            return await self._tell(death.tenant, (death.notice,))

    @activity.defn
    async def raise_alerts(self, deaths: Deaths) -> DeskDone:
        """Tell of deaths: few one by one, many summed up by reason and agent."""
        with judged():
            return await self._tell(deaths.tenant, deaths.notices)

    @activity.defn
    async def look_at_letters(self, desk: DeskRef) -> DeskDone:
        """Tell of calls that wait for a person; escalate letters by age, announce and carry out discards."""
        with judged():
            await self._ledger.alerts.record_approvals(desk.tenant, sinks=tuple(self._sinks))
            await self._escalate(desk.tenant)
            await self._retain(desk.tenant)
            return await self._done(desk.tenant)

    @activity.defn
    async def deliver_alert(self, at: AlertAt) -> None:
        """One alert to one sink. Fails to be tried again after the wait that it names, until it is given up."""
        with judged():
            begun = await self._ledger.alert_deliveries.begin(at.alert_id, at.sink)
            if begun is None:
                return
            if begun.delivery is DeliveryState.DISABLED:
                log.warning("alert_sink_is_disabled", sink=at.sink, alert=at.alert_id)
                return
            if begun.throttled_seconds > 0:
                raise _again("the sink asked for fewer alerts", begun.throttled_seconds + chance())
            async with heartbeating():
                await self._attempt(at, begun)

    async def _tell(self, tenant: str, notices: Sequence[DeathNotice]) -> DeskDone:
        groups = grouped(list(notices))
        alert_ids = await self._ledger.alerts.record(tenant, groups, sinks=tuple(self._sinks))
        return await self._done(tenant, alert_ids)

    async def _done(self, tenant: str, alert_ids: Sequence[str] = ()) -> DeskDone:
        unlogged = await self._ledger.alerts.unlogged(tenant)
        for alert in unlogged:
            write_to(log, alert)
        await self._ledger.alerts.mark_logged([alert.id for alert in unlogged])
        new = [*alert_ids, *(alert.id for alert in unlogged)]
        # A repetition does not know what the attempt before it had recorded: it looks at all that is due.
        overdue = OVERDUE_SECONDS if activity.info().attempt == 1 else 0.0
        left = await self._ledger.alerts.left_to_deliver(tenant, new, overdue_seconds=overdue)
        await self._ledger.alerts.mark_looked(tenant)
        return DeskDone(
            deliveries=tuple(AlertRef(tenant=tenant, alert_id=one.alert_id, sinks=one.sinks) for one in left),
            look_in_seconds=await self._ledger.alerts.next_look_seconds(tenant, self._ages.ages),
        )

    async def _escalate(self, tenant: str) -> None:
        # From the highest level down: a desk that was away for long tells the loudest once, not all at once.
        for level, age in reversed(list(enumerate(self._ages.escalate_after, start=1))):
            due = await self._ledger.alerts.to_escalate(tenant, age=age, level=level)
            groups = by_reason(AlertKind.ESCALATED, due)
            await self._ledger.alerts.record(tenant, groups, level=level, sinks=tuple(self._sinks))

    async def _retain(self, tenant: str) -> None:
        discard_after, announce_after = self._ages.discard_after, self._ages.announce_after
        if discard_after is None or announce_after is None:
            return
        await self._discard(tenant, discard_after)
        announced = by_reason(
            AlertKind.DISCARDING, await self._ledger.alerts.to_announce(tenant, age=announce_after)
        )
        await self._ledger.alerts.record(tenant, announced, sinks=tuple(self._sinks))
        level = self._ages.held_level
        held = await self._ledger.alerts.held_from_discard(tenant, age=discard_after, level=level)
        groups = by_reason(AlertKind.ESCALATED, held)
        await self._ledger.alerts.record(tenant, groups, level=level, sinks=tuple(self._sinks))

    async def _discard(self, tenant: str, after: timedelta) -> None:
        note = f"open for more than {after.days} days"
        for job_id in await self._ledger.alerts.to_discard(tenant, age=after, notice=self._ages.notice):
            try:
                await self._ledger.dead_letters.request(
                    "discard", tenant, job_id, actor=RETENTION, note=note, payload={}
                )
            except NotOpen:
                continue  # somebody decided at this moment

    async def _attempt(self, at: AlertAt, begun: BegunDelivery) -> None:
        try:
            taken = await self._sink(at.sink).deliver(begun.alert)
        except NotTaken as refused:
            await self._refused(at, begun.attempts, refused)
        else:
            await self._ledger.alert_deliveries.delivered(
                at.alert_id, at.sink, status=taken.status, receipt=taken.receipt
            )
            log.info("alert_delivered", alert=at.alert_id, sink=at.sink, attempts=begun.attempts)

    def _sink(self, name: str) -> Sink:
        sink = self._sinks.get(name)
        if sink is None:  # of another release or of other settings: a worker that has it may come
            raise NotTaken(UNKNOWN_SINK)
        return sink

    async def _refused(self, at: AlertAt, attempts: int, refused: NotTaken) -> None:
        wait = wait_after(attempts, chance=chance(), asked_seconds=refused.asked_seconds)
        state = _state_after(refused.refusal, wait)
        if state is DeliveryState.DISABLED:
            await self._ledger.alert_deliveries.disable(at.sink)
        if wait is not None and refused.refusal is Refusal.SLOWER:
            await self._ledger.alert_deliveries.throttle(at.sink, wait)
        await self._ledger.alert_deliveries.failed(
            at.alert_id,
            at.sink,
            state=state,
            status=refused.status,
            error=str(refused),
            wait_seconds=wait or 0.0,
        )
        if state is DeliveryState.WAITING and wait is not None:
            raise _again(str(refused), wait)
        log.error(f"alert_{state.value}", alert=at.alert_id, sink=at.sink, attempts=attempts, why=str(refused))


def _state_after(refusal: Refusal, wait: float | None) -> DeliveryState:
    if refusal is Refusal.NEVER_AGAIN:
        return DeliveryState.DISABLED
    return DeliveryState.GIVEN_UP if wait is None else DeliveryState.WAITING


def _again(why: str, wait_seconds: float) -> ApplicationError:
    return ApplicationError(
        why,
        type="alert_not_delivered",
        next_retry_delay=timedelta(seconds=wait_seconds),
        category=ApplicationErrorCategory.BENIGN,
    )
