"""An incident ticket in the tracker: one a reason, agent and day, however many alerts speak of it.

The alert's group has an operation key, as an effect has a step key. What is known about repeating a creation is
the tracker's own word (its effect class); the ledger notes that a creation has begun before it is sent.
"""

from __future__ import annotations

from typing import Final, assert_never

from agentjobs.alerts.message import links
from agentjobs.alerts.sink import NotTaken, Taken
from agentjobs.domain.alerts import Alert, AlertKind
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import JobError, RetryableError
from agentjobs.domain.job import Job, Principal
from agentjobs.ledger.alert_deliveries import BegunIncident
from agentjobs.ledger.database import Connection
from agentjobs.ledger.ledger import Ledger
from agentjobs.trackers.tracker import NewTicket, TicketReceipt, Tracker

USER: Final = "dead-letter-desk"
"""On whose behalf an incident is opened: no person of the tenant."""

CATEGORY: Final = "incident"

_MOMENT: Final = "%Y-%m-%d %H:%M:%S UTC"


class IncidentSink:
    """Incidents in the tracker that tickets go to."""

    name = "incident"

    def __init__(self, tracker: Tracker, ledger: Ledger, *, links_base: str | None = None) -> None:
        self._tracker = tracker
        self._ledger = ledger
        self._links_base = links_base

    async def deliver(self, alert: Alert) -> Taken:
        """Open the group's incident, or find that it is open. Raises NotTaken."""
        try:
            return Taken(receipt=await self._opened(alert))
        except JobError as error:
            asked = error.retry_after_seconds if isinstance(error, RetryableError) else None
            raise NotTaken(f"the tracker: {error.category.value}", asked_seconds=asked) from None

    async def _opened(self, alert: Alert) -> str:
        key = alert.incident_key
        begun = await self._ledger.alert_deliveries.begin_incident(alert.tenant, key)
        if begun.receipt is not None:
            return begun.receipt
        job = await self._job(alert)
        found = None if begun.first else await self._found_again(key, begun, job)
        receipt = found or await self._created(alert, key, job)
        await self._ledger.alert_deliveries.incident_opened(key, receipt.id)
        return receipt.id

    async def _found_again(self, key: str, begun: BegunIncident, job: Job) -> TicketReceipt | None:
        """After an attempt that did not come back: what it made, or None when it may be made (again)."""
        match self._tracker.effect_class:
            case EffectClass.IDEMPOTENT | EffectClass.TRANSACTIONAL | EffectClass.READ_ONLY:
                return None  # created again under its key, it is the same ticket
            case EffectClass.RECONCILABLE:
                return await self._looked_up(key, begun, job)
            case EffectClass.UNSAFE:
                raise NotTaken("the incident may be open already, and the tracker cannot be asked")
            case _:
                assert_never(self._tracker.effect_class)

    async def _looked_up(self, key: str, begun: BegunIncident, job: Job) -> TicketReceipt | None:
        horizon = self._tracker.landing_horizon_seconds
        if begun.begun_seconds < horizon:
            wait = horizon - begun.begun_seconds
            raise NotTaken("an earlier creation may still land at the tracker", asked_seconds=wait)
        found = await self._tracker.find(key, job=job)
        if found is None and not await self._ledger.alert_deliveries.begin_incident_again(
            key, settled_seconds=horizon
        ):
            raise NotTaken("another alert of the group is opening the incident", asked_seconds=horizon)
        return found

    async def _created(self, alert: Alert, key: str, job: Job) -> TicketReceipt:
        ticket = _ticket(alert, self._links_base)
        if self._tracker.effect_class is EffectClass.TRANSACTIONAL:
            async with self._ledger.database.transaction() as connection:
                receipt = await self._create(ticket, key, job, connection)
                await self._ledger.alert_deliveries.incident_opened(key, receipt.id, connection)
                return receipt
        return await self._create(ticket, key, job, None)

    async def _create(self, ticket: NewTicket, key: str, job: Job, connection: Connection | None) -> TicketReceipt:
        try:
            return await self._tracker.create(ticket, key=key, job=job, connection=connection)
        except JobError as error:
            if error.nothing_happened:
                await self._ledger.alert_deliveries.release_incident(key)
            raise

    async def _job(self, alert: Alert) -> Job:
        """The group's first job, as trackers want to know it. Nothing of its content goes along."""
        record = await self._ledger.jobs.read(alert.tenant, alert.shown_ids[0])
        if record is None:
            raise NotTaken("the ledger does not have the alert's job")
        return Job(
            id=record.id,
            principal=Principal(tenant=alert.tenant, user=USER),
            agent=record.agent,
            policy_version=record.policy_version,
            text="",
            deadline_at=record.deadline_at,
        )


def _ticket(alert: Alert, base: str | None) -> NewTicket:
    subject = f"{_told(alert)}: {alert.agent}, {alert.reason}"
    lines = [
        f"{subject}.",
        *_counted(alert),
        f"Alert {alert.id}. Later alerts of the day for the same agent and reason open no further incident.",
        "",
        *links(alert, base),
    ]
    urgent = alert.kind is AlertKind.ESCALATED or alert.count > 1
    return NewTicket(
        subject=subject[:200],
        body="\n".join(lines),
        category=CATEGORY,
        urgency="high" if urgent else "normal",
        language="en",
    )


def _counted(alert: Alert) -> list[str]:
    if alert.kind.topic == "approval":
        counted, what = f"Calls that wait for an approval: {alert.count}.", "request"
    else:
        counted = f"Dead letters: {alert.count}, with effects in doubt: {alert.in_doubt_count}."
        what = "death"
    return [counted, f"First {what} {alert.first_at:{_MOMENT}}, last {alert.last_at:{_MOMENT}}."]


def _told(alert: Alert) -> str:
    match alert.kind:
        case AlertKind.JOB_DIED:
            return "A job died"
        case AlertKind.JOBS_DIED:
            return "Jobs died"
        case AlertKind.ESCALATED:
            return "Dead letters wait for a decision"
        case AlertKind.DISCARDING:
            return "Dead letters are about to be discarded"
        case AlertKind.APPROVAL_REQUESTED:
            return "A call waits for an approval"
        case AlertKind.APPROVALS_REQUESTED:
            return "Calls wait for an approval"
        case _:
            assert_never(alert.kind)
