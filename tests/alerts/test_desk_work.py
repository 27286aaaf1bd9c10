"""What the desk does: each death told once, letters told of again by age, discards announced, alerts delivered."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.alerts import DeskWork
from activities.inputs import AlertAt, DeathNotice, Deaths, DeskDone, DeskRef, OneDeath
from agentjobs.alerts.sink import NotTaken, Refusal, Sink, Taken
from agentjobs.domain.alerts import SHOWN_IDS, AgePolicy, Alert, AlertKind, by_reason
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category
from agentjobs.domain.webhooks import ATTEMPTS, RETRY_SECONDS
from agentjobs.ledger.alert_deliveries import DeliveryRecord, DeliveryState
from tests.activities.stage import FIRST, Attempt
from tests.ledger.scene import Scene

SECOND = Attempt(number=2)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
KEEP_30_DAYS = AgePolicy(escalate_after=(4 * HOUR, DAY), discard_after=30 * DAY, notice=3 * DAY)


class ScriptedSink:
    """Takes every alert, or fails as it is told."""

    def __init__(self, name: str = "scripted") -> None:
        self.name = name
        self.problem: Exception | None = None
        self.told: list[Alert] = []

    async def deliver(self, alert: Alert) -> Taken:
        """Note it."""
        self.told.append(alert)
        if self.problem is not None:
            raise self.problem
        return Taken(status=200)


def work(scene: Scene, *sinks: Sink, ages: AgePolicy | None = None) -> DeskWork:
    """The activities of a desk."""
    return DeskWork(scene.ledger, sinks, ages or AgePolicy())


async def died(scene: Scene, count: int, **changes: Any) -> list[DeathNotice]:
    """So many deaths."""
    ids = [await scene.dead(**changes) for _ in range(count)]
    return [DeathNotice(job_id=i, generation=1, agent="support-triage", reason="access_denied") for i in ids]


async def tell(desk: DeskWork, notices: Sequence[DeathNotice], attempt: Attempt = FIRST) -> DeskDone:
    """The desk tells of these."""
    return await attempt.environment("alerts").run(
        desk.raise_alerts, Deaths(tenant="acme", notices=tuple(notices))
    )


async def look(desk: DeskWork) -> DeskDone:
    """The desk looks at its letters."""
    return await FIRST.environment("look").run(desk.look_at_letters, DeskRef(tenant="acme"))


async def deliver(desk: DeskWork, at: AlertAt) -> float | None:
    """One attempt; the wait in seconds that it asks for, or None when it is over."""
    try:
        await FIRST.environment("deliver").run(desk.deliver_alert, at)
    except ApplicationError as error:
        assert (error.type, error.non_retryable) == ("alert_not_delivered", False)
        assert error.next_retry_delay is not None
        return error.next_retry_delay.total_seconds()
    return None


async def aged(scene: Scene, by: timedelta) -> None:
    """Everything happened so much earlier."""
    await scene.execute("UPDATE dead_letters SET died_at = died_at - $1::interval", by)
    await scene.execute("UPDATE alerts SET created_at = created_at - $1::interval", by)


async def kinds(scene: Scene) -> list[tuple[str, int, int]]:
    """Kind, level and count of every alert, oldest first."""
    rows = await scene.rows("SELECT kind, level, letter_count FROM alerts ORDER BY created_at, kind, level")
    return [(row["kind"], row["level"], row["letter_count"]) for row in rows]


async def alerted(scene: Scene) -> int:
    """Of how many letters somebody was told."""
    rows = await scene.rows("SELECT count(*)::integer AS n FROM dead_letters WHERE alerted_at IS NOT NULL")
    number: int = rows[0]["n"]
    return number


async def only_delivery(scene: Scene, sink: str = "scripted") -> DeliveryRecord:
    """The delivery to this sink."""
    (found,) = [one for one in await scene.ledger.alert_deliveries.page("acme") if one.sink == sink]
    return found


def events(capsys: pytest.CaptureFixture[str], name: str) -> list[str]:
    """The lines of the log with this event."""
    return [line for line in capsys.readouterr().out.splitlines() if f" {name} " in line]


async def test_a_death_is_told_once_and_without_content(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    (notice,) = await died(scene, 1, text="s3cr3t request")
    desk = work(scene)

    for _ in range(2):
        await FIRST.environment("alert").run(desk.raise_alert, OneDeath(tenant="acme", notice=notice))
        await tell(desk, [notice])

    told_of = events(capsys, "job_died")
    assert len(told_of) == 1
    assert notice.job_id in told_of[0]
    assert not {"s3cr3t", "no such grant"} & set(told_of[0].split())
    assert (await scene.letter(notice.job_id)).alerted_at is not None


async def test_many_deaths_are_one_alert_with_its_count_and_some_ids(scene: Scene) -> None:
    sink = ScriptedSink()
    notices = await died(scene, 30)

    done = await tell(work(scene, sink), notices)
    (ref,) = done.deliveries
    await deliver(work(scene, sink), AlertAt(alert_id=ref.alert_id, sink="scripted"))

    (told,) = sink.told
    assert (told.kind, told.count, len(told.shown_ids)) == (AlertKind.JOBS_DIED, 30, SHOWN_IDS)
    assert set(told.shown_ids) <= {notice.job_id for notice in notices}
    assert await alerted(scene) == 30
    assert await scene.count("alert_letters") == 30


async def test_notices_told_again_in_another_company_are_counted_once(scene: Scene) -> None:
    notices = await died(scene, 20)
    desk = work(scene)
    await tell(desk, notices[:12])

    await tell(desk, notices)

    assert await kinds(scene) == [("jobs.died", 0, 12), ("jobs.died", 0, 8)]


async def test_a_crash_before_the_mark_is_logged_again_and_no_second_alert(
    scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = await died(scene, 1)
    sink = ScriptedSink()

    async def crash(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr("agentjobs.ledger.alerts.Alerts.mark_logged", crash)
        with pytest.raises(ApplicationError):
            await tell(work(scene, sink), notices)
    untold = await alerted(scene)

    done = await tell(work(scene, sink), notices, SECOND)

    assert (untold, await alerted(scene)) == (0, 1)
    assert len(events(capsys, "job_died")) == 2
    assert [ref.sinks for ref in done.deliveries] == [("scripted",)]
    assert await scene.count("alerts") == 1


async def test_an_attempt_that_crashed_after_the_mark_still_leads_to_a_delivery(scene: Scene) -> None:
    notices = await died(scene, 1)
    lost = await tell(work(scene, ScriptedSink()), notices)

    again = await tell(work(scene, ScriptedSink()), notices, SECOND)

    assert again.deliveries == lost.deliveries


async def test_a_tenant_hears_nothing_of_another_one(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("beta")
    theirs = await scene.dead(tenant="beta")
    notices = await died(scene, 1)
    stray = notices[0].model_copy(update={"job_id": theirs})

    await tell(work(scene), [*notices, stray])
    await aged(scene, 5 * HOUR)
    await look(work(scene, ages=KEEP_30_DAYS))

    rows = await scene.rows("SELECT tenant, shown_ids FROM alerts")
    assert [(row["tenant"], row["shown_ids"]) for row in rows] == [("acme", [notices[0].job_id])] * 2


async def test_open_letters_are_told_of_again_once_a_level(scene: Scene) -> None:
    desk = work(scene, ages=KEEP_30_DAYS)
    await tell(desk, await died(scene, 3))
    fresh = await look(desk)

    for age in (5 * HOUR, HOUR, DAY, DAY):
        await aged(scene, age)
        await look(desk)

    escalated = [alert for alert in await kinds(scene) if alert[0] == "dead_letters.escalated"]
    assert escalated == [("dead_letters.escalated", 1, 3), ("dead_letters.escalated", 2, 3)]
    assert fresh.look_in_seconds is not None
    assert 0 < fresh.look_in_seconds <= 3600


async def test_a_desk_that_was_away_for_long_tells_the_loudest_level_only(scene: Scene) -> None:
    desk = work(scene, ages=KEEP_30_DAYS)
    await tell(desk, await died(scene, 1))
    await aged(scene, 3 * DAY)

    await look(desk)

    assert [level for kind, level, _ in await kinds(scene) if kind == "dead_letters.escalated"] == [2]


async def test_a_letter_that_was_decided_on_is_not_told_of_again(scene: Scene) -> None:
    desk = work(scene, ages=KEEP_30_DAYS)
    (notice,) = await died(scene, 1)
    await tell(desk, [notice])
    await scene.ledger.dead_letters.request(
        "redrive", "acme", notice.job_id, actor="rita", note="", payload={"policy": "original"}
    )
    await aged(scene, 2 * DAY)

    done = await look(desk)

    assert len(await kinds(scene)) == 1
    assert done.look_in_seconds is None


async def test_a_discard_by_policy_is_announced_some_days_before_and_audited(scene: Scene) -> None:
    desk = work(scene, ages=KEEP_30_DAYS)
    (notice,) = await died(scene, 1)
    await tell(desk, [notice])
    await aged(scene, 28 * DAY)
    await look(desk)
    announced = (await scene.letter(notice.job_id)).state

    await aged(scene, 2 * DAY + HOUR)  # old enough, and announced for less than three days
    await look(desk)
    too_soon = (await scene.letter(notice.job_id)).state
    await aged(scene, DAY)
    await look(desk)

    assert [kind for kind, *_ in await kinds(scene)].count("dead_letters.discarding") == 1
    assert (announced, too_soon, (await scene.letter(notice.job_id)).state) == (
        "open",
        "open",
        "discard_requested",
    )
    assert (await scene.topics()).count("discard_job") == 1
    audited = await scene.rows("SELECT actor, action, target FROM audit_log WHERE actor = 'retention'")
    assert audited == [{"actor": "retention", "action": "discard", "target": notice.job_id}]


async def test_what_is_in_doubt_is_never_discarded_but_escalated(scene: Scene) -> None:
    desk = work(scene, ages=KEEP_30_DAYS)
    job_id = (await scene.accept()).id
    await scene.begin(job_id, effect_class=EffectClass.UNSAFE)
    await scene.bury(job_id, reason=Category.OUTCOME_UNKNOWN)
    notice = DeathNotice(job_id=job_id, generation=1, agent="support-triage", reason="outcome_unknown")
    await tell(desk, [notice])

    for _ in range(3):
        await aged(scene, 31 * DAY)
        await look(desk)

    assert (await scene.letter(job_id)).state == "open"
    assert (await kinds(scene))[-1] == ("dead_letters.escalated", KEEP_30_DAYS.held_level, 1)
    assert "dead_letters.discarding" not in [kind for kind, *_ in await kinds(scene)]
    assert await scene.rows("SELECT FROM alerts WHERE kind LIKE '%escalated' AND in_doubt_count <> 1") == []


async def test_without_retention_letters_are_kept(scene: Scene) -> None:
    desk = work(scene)
    (notice,) = await died(scene, 1)
    await tell(desk, [notice])
    await aged(scene, 4000 * DAY)

    await look(desk)

    assert (await scene.letter(notice.job_id)).state == "open"
    assert len(await kinds(scene)) == 1


async def test_a_sink_that_is_down_is_tried_by_the_schedule_and_then_given_up(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = ScriptedSink()
    sink.problem = NotTaken("HTTP 500", status=500)
    desk = work(scene, sink)
    done = await tell(desk, await died(scene, 1))
    at = AlertAt(alert_id=done.deliveries[0].alert_id, sink="scripted")

    waits = [await deliver(desk, at) for _ in range(ATTEMPTS)]
    given_up = await only_delivery(scene)
    after_the_end = await deliver(desk, at)

    for wait, scheduled in zip(waits[:-1], RETRY_SECONDS, strict=True):
        assert wait is not None
        assert 0.8 * scheduled <= wait <= 1.2 * scheduled
    assert (waits[-1], after_the_end, len(sink.told)) == (None, None, ATTEMPTS)
    assert (given_up.state, given_up.attempts, given_up.last_status) == (DeliveryState.GIVEN_UP, ATTEMPTS, 500)
    assert len(events(capsys, "alert_given_up")) == 1


async def test_a_sink_that_comes_back_gets_the_alert_under_the_same_id(scene: Scene) -> None:
    sink = ScriptedSink()
    sink.problem = NotTaken("no answer")
    desk = work(scene, sink)
    done = await tell(desk, await died(scene, 1))
    at = AlertAt(alert_id=done.deliveries[0].alert_id, sink="scripted")
    await deliver(desk, at)
    sink.problem = None

    await deliver(desk, at)

    delivery = await only_delivery(scene)
    assert (delivery.state, delivery.attempts, delivery.last_error) == (DeliveryState.DELIVERED, 2, None)
    assert delivery.delivered_at is not None
    assert len({alert.id for alert in sink.told}) == 1


async def test_a_sink_that_is_gone_gets_nothing_until_it_is_enabled(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = ScriptedSink()
    sink.problem = NotTaken("HTTP 410", status=410, refusal=Refusal.NEVER_AGAIN)
    desk = work(scene, sink)
    done = await tell(desk, await died(scene, 2))
    first, second = (AlertAt(alert_id=ref.alert_id, sink="scripted") for ref in done.deliveries)

    assert [await deliver(desk, first), await deliver(desk, second)] == [None, None]
    disabled = [one.sink for one in await scene.ledger.alert_deliveries.disabled()]
    states = {one.state for one in await scene.ledger.alert_deliveries.page("acme") if one.sink == "scripted"}
    await scene.ledger.alert_deliveries.enable("scripted")

    assert (len(sink.told), disabled, states) == (1, ["scripted"], {DeliveryState.DISABLED})
    assert await scene.ledger.alert_deliveries.disabled() == []
    assert len(events(capsys, "alert_disabled")) == 1


async def test_a_sink_that_asks_for_fewer_is_left_alone_by_other_alerts_too(scene: Scene) -> None:
    sink, other = ScriptedSink(), ScriptedSink("other")
    sink.problem = NotTaken("HTTP 429", status=429, refusal=Refusal.SLOWER, asked_seconds=600)
    desk = work(scene, sink, other)
    done = await tell(desk, await died(scene, 2))
    first, second = (ref.alert_id for ref in done.deliveries)

    waits = [await deliver(desk, AlertAt(alert_id=alert_id, sink="scripted")) for alert_id in (first, second)]
    await deliver(desk, AlertAt(alert_id=second, sink="other"))

    assert waits[0] == 600
    assert waits[1] is not None
    assert 590 <= waits[1] <= 602
    assert (len(sink.told), len(other.told)) == (1, 1)
    deliveries = await scene.rows(
        "SELECT attempts FROM alert_deliveries WHERE sink = 'scripted' ORDER BY attempts"
    )
    assert [row["attempts"] for row in deliveries] == [0, 1]


async def test_a_sink_that_no_worker_knows_is_waited_for_and_shown(scene: Scene) -> None:
    done = await tell(work(scene, ScriptedSink()), await died(scene, 1))
    at = AlertAt(alert_id=done.deliveries[0].alert_id, sink="scripted")

    wait = await deliver(work(scene), at)

    assert wait is not None
    assert (await only_delivery(scene)).last_error == "no sink of this name is configured"


async def test_a_delivery_that_nobody_makes_is_found_when_it_is_overdue(scene: Scene) -> None:
    desk = work(scene, ScriptedSink())
    lost = await tell(desk, await died(scene, 1))
    at_once = await look(desk)
    await scene.execute("UPDATE alert_deliveries SET next_attempt_at = now() - interval '20 minutes'")

    found = await look(desk)

    assert at_once.deliveries == ()
    assert found.deliveries == lost.deliveries
    assert found.look_in_seconds == pytest.approx(60, abs=1)


async def test_a_desk_that_is_gone_is_woken_by_one_of_its_open_letters(scene: Scene) -> None:
    desk = work(scene)
    await tell(desk, await died(scene, 3))
    await scene.execute("DELETE FROM outbox")
    there = await scene.ledger.alerts.wake_desks()
    for table, column in (("alert_desks", "looked_at"), ("dead_letters", "alerted_at")):
        await scene.execute(f"UPDATE {table} SET {column} = now() - interval '3 hours'")

    woken = [await scene.ledger.alerts.wake_desks() for _ in range(2)]

    assert (there, woken, await scene.topics()) == (0, [1, 0], ["job_died"])


async def test_the_groups_of_a_look_go_to_every_sink_and_hold_no_content(scene: Scene) -> None:
    sink = ScriptedSink()
    desk = work(scene, sink, ages=KEEP_30_DAYS)
    await tell(desk, await died(scene, 2, text="s3cr3t request"))
    await aged(scene, 5 * HOUR)

    done = await look(desk)
    for ref in done.deliveries:
        await deliver(desk, AlertAt(alert_id=ref.alert_id, sink="scripted"))

    assert [alert.kind for alert in sink.told][-1] is AlertKind.ESCALATED
    assert "s3cr3t" not in json.dumps([alert.model_dump(mode="json") for alert in sink.told])


def test_by_reason_keeps_every_death() -> None:
    notices = [DeathNotice(job_id=f"j{n}", generation=1, agent="a", reason=f"r{n % 3}") for n in range(9)]

    groups = by_reason(AlertKind.ESCALATED, list(notices))

    assert sorted(death.job_id for group in groups for death in group.deaths) == [n.job_id for n in notices]
