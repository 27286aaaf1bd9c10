"""One incident a group and day, also over retries, crashes and alerts at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from agentjobs.alerts.incidents import IncidentSink
from agentjobs.alerts.sink import NotTaken
from agentjobs.domain.alerts import Alert, AlertKind
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.job import Job
from agentjobs.ledger.database import Connection
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.trackers.tracker import FoundTicket, NewTicket, TicketReceipt
from tests.alerts.test_grouping import alert
from tests.ledger.scene import Scene


class FakeTracker:
    """A tracker elsewhere of any class; what it opens, `find` sees."""

    def __init__(self, effect_class: EffectClass, horizon: float = 0.0) -> None:
        self.effect_class = effect_class
        self.landing_horizon_seconds = horizon
        self.opened: list[tuple[str, NewTicket, Job]] = []
        self.before_answer: Exception | None = None
        """Raised after the ticket was opened: its answer is lost."""

        self.refusal: Exception | None = None

    async def find(self, key: str, *, job: Job) -> TicketReceipt | None:
        """By the key."""
        numbers = [number for number, (of, *_) in enumerate(self.opened, start=1) if of == key]
        return TicketReceipt(id=str(numbers[0])) if numbers else None

    async def create(
        self, ticket: NewTicket, *, key: str, job: Job, connection: Connection | None
    ) -> TicketReceipt:
        """Open it, or lose the answer."""
        if self.refusal is not None:
            raise self.refusal
        found = await self.find(key, job=job) if self.effect_class is EffectClass.IDEMPOTENT else None
        if found is None:
            self.opened.append((key, ticket, job))
        if self.before_answer is not None:
            raise self.before_answer
        return found or TicketReceipt(id=str(len(self.opened)))

    async def close(self, receipt: TicketReceipt, *, job: Job, connection: Connection | None) -> None:
        """Not asked for."""

    async def search(self, query: str, *, job: Job, limit: int) -> list[FoundTicket]:
        """Not asked for."""
        return []


LOST = RetryableError(Category.TIMEOUT, "the answer was lost")


async def about(scene: Scene, **changes: object) -> Alert:
    """An alert about a job of the ledger, whose request holds content."""
    job_id = await scene.dead(text="s3cr3t request")
    return alert(shown_ids=(job_id,), **changes)


async def failed(sink: IncidentSink, told: Alert) -> NotTaken:
    """How the attempt fails."""
    with pytest.raises(NotTaken) as caught:
        await sink.deliver(told)
    return caught.value


async def test_an_incident_is_a_ticket_in_the_tracker_without_content(scene: Scene) -> None:
    sink = IncidentSink(PostgresTracker(scene.ledger.tickets), scene.ledger, links_base="https://jobs.example.org")
    told = await about(scene)

    taken = await sink.deliver(told)

    (ticket,) = await scene.rows("SELECT * FROM tickets")
    assert taken.receipt == f"T-{ticket['id']}"
    assert (ticket["tenant"], ticket["operation_key"]) == ("acme", told.incident_key)
    assert f"https://jobs.example.org/v1/dead-letters/{told.shown_ids[0]}" in ticket["body"]
    assert "s3cr3t" not in ticket["subject"] + ticket["body"]


@pytest.mark.parametrize("effect_class", [EffectClass.TRANSACTIONAL, EffectClass.IDEMPOTENT])
async def test_later_alerts_of_the_group_find_the_incident_open(scene: Scene, effect_class: EffectClass) -> None:
    tracker = FakeTracker(effect_class)
    sink = IncidentSink(tracker, scene.ledger)

    first = await sink.deliver(await about(scene))
    second = await sink.deliver(await about(scene, id="alert_2", kind=AlertKind.JOBS_DIED, count=20))
    other = await sink.deliver(await about(scene, id="alert_3", reason="timeout"))

    assert first == second != other
    assert len(tracker.opened) == 2


async def test_alerts_of_a_group_at_the_same_moment_open_one_incident(scene: Scene) -> None:
    sink = IncidentSink(PostgresTracker(scene.ledger.tickets), scene.ledger)
    alerts = [await about(scene, id=f"alert_{number}") for number in range(5)]

    taken = await asyncio.gather(*(sink.deliver(one) for one in alerts))

    assert len({one.receipt for one in taken}) == 1
    assert await scene.count("tickets") == 1


async def test_a_creation_whose_answer_was_lost_is_repeated_under_its_key(scene: Scene) -> None:
    tracker = FakeTracker(EffectClass.IDEMPOTENT)
    tracker.before_answer = LOST
    sink = IncidentSink(tracker, scene.ledger)
    told = await about(scene)
    error = await failed(sink, told)
    tracker.before_answer = None

    taken = await sink.deliver(told)

    assert str(error) == "the tracker: timeout"
    assert (taken.receipt, len(tracker.opened)) == ("1", 1)


async def test_where_it_can_be_looked_up_it_is_once_it_has_landed(scene: Scene) -> None:
    tracker = FakeTracker(EffectClass.RECONCILABLE, horizon=120)
    tracker.before_answer = LOST
    sink = IncidentSink(tracker, scene.ledger)
    told = await about(scene)
    await failed(sink, told)
    tracker.before_answer = None
    too_soon = await failed(sink, told)
    await scene.execute("UPDATE alert_incidents SET begun_at = now() - interval '3 minutes'")

    taken = await sink.deliver(told)

    assert too_soon.asked_seconds == pytest.approx(120, abs=5)
    assert (taken.receipt, len(tracker.opened)) == ("1", 1)


async def test_of_two_that_look_and_find_nothing_one_opens_it(scene: Scene) -> None:
    tracker = FakeTracker(EffectClass.RECONCILABLE, horizon=120)
    sink = IncidentSink(tracker, scene.ledger)
    told = await about(scene)
    await scene.ledger.alert_deliveries.begin_incident("acme", told.incident_key)  # and its attempt died
    await scene.execute("UPDATE alert_incidents SET begun_at = now() - interval '3 minutes'")

    outcomes = await asyncio.gather(*(sink.deliver(told) for _ in range(4)), return_exceptions=True)

    assert len(tracker.opened) == 1
    assert all(isinstance(outcome, NotTaken) or outcome.receipt == "1" for outcome in outcomes)  # type: ignore[union-attr]


async def test_where_it_cannot_be_known_it_is_not_opened_again(scene: Scene) -> None:
    tracker = FakeTracker(EffectClass.UNSAFE)
    tracker.before_answer = LOST
    sink = IncidentSink(tracker, scene.ledger)
    told = await about(scene)

    for _ in range(2):
        await failed(sink, told)

    assert len(tracker.opened) == 1


async def test_a_creation_that_was_refused_leaves_no_doubt(scene: Scene) -> None:
    tracker = FakeTracker(EffectClass.UNSAFE)
    tracker.refusal = RetryableError(Category.RATE_LIMITED, "slow", retry_after_seconds=90, nothing_happened=True)
    sink = IncidentSink(tracker, scene.ledger)
    told = await about(scene)
    error = await failed(sink, told)
    tracker.refusal = None

    taken = await sink.deliver(told)

    assert (error.asked_seconds, taken.receipt, len(tracker.opened)) == (90, "1", 1)
