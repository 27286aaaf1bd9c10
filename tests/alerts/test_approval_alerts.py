"""Somebody is told when a call begins to wait for a person: once a request, and nothing of what it says."""

import json

import pytest
from temporalio.exceptions import ApplicationError

from activities.alerts import DeskWork
from activities.inputs import DeskDone, DeskRef
from agentjobs.alerts.message import webhook_body
from agentjobs.domain.alerts import SINGLES, AgePolicy, Alert, AlertKind
from agentjobs.domain.approvals import Decision
from agentjobs.domain.keys import step_key
from agentjobs.ledger.approvals import WantedCall, Word
from tests.activities.stage import FIRST, Attempt
from tests.alerts.test_desk_work import SECOND, ScriptedSink, events
from tests.alerts.test_grouping import alert
from tests.ledger.scene import CREATE_TICKET, Scene

BASE = "https://jobs.example.org/"


async def asked(scene: Scene, tool: str = "create_ticket", **changes: object) -> str:
    """A job that begins to wait for a person; its id."""
    job_id = await scene.running(text="s3cr3t request", **changes)
    await ask(scene, job_id, tool)
    return job_id


async def ask(scene: Scene, job_id: str, tool: str = "create_ticket") -> None:
    """As the workflow does it, again after each look."""
    call = WantedCall(
        job_id=job_id,
        key=step_key(job_id, CREATE_TICKET),
        step=CREATE_TICKET,
        tool=tool,
        fingerprint="f",
        seconds=600,
    )
    await scene.ledger.approvals.ask(call)


async def look(scene: Scene, *sinks: ScriptedSink, attempt: Attempt = FIRST) -> DeskDone:
    """The desk looks."""
    desk = DeskWork(scene.ledger, sinks, AgePolicy())
    return await attempt.environment("look").run(desk.look_at_letters, DeskRef(tenant="acme"))


async def alerts(scene: Scene) -> list[tuple[str, str, int]]:
    """Kind, tool and count of every alert."""
    rows = await scene.rows("SELECT kind, reason, letter_count FROM alerts ORDER BY kind, reason, letter_count")
    return [(row["kind"], row["reason"], row["letter_count"]) for row in rows]


async def begun(scene: Scene, done: DeskDone) -> Alert:
    """The one alert that is to be delivered."""
    (ref,) = done.deliveries
    begun = await scene.ledger.alert_deliveries.begin(ref.alert_id, ref.sinks[0])
    assert begun is not None
    return begun.alert


async def test_a_request_is_told_once_however_often_it_is_asked_for_and_looked_at(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = await asked(scene)
    await ask(scene, job_id)
    topics = await scene.topics()

    done = [await look(scene, ScriptedSink()) for _ in range(2)]

    (line,) = events(capsys, "approval_requested")
    assert topics.count("approval_requested") == 1
    assert [len(one.deliveries) for one in done] == [1, 0]
    assert await alerts(scene) == [("approval.requested", "create_ticket", 1)]
    assert f"job={job_id}" in line
    assert "s3cr3t" not in line


async def test_what_a_sink_gets_has_the_tool_and_the_way_to_the_request_and_no_content(scene: Scene) -> None:
    job_id = await asked(scene)
    told = await begun(scene, await look(scene, ScriptedSink()))

    body = webhook_body(told, BASE)

    document = json.loads(body)
    assert (document["type"], document["data"]["tool"], document["data"]["count"]) == (
        "approval.requested",
        "create_ticket",
        1,
    )
    assert document["data"]["links"] == [f"{BASE}v1/jobs/{job_id}/approvals"]
    assert set(document["data"]) == {
        "alert", "tenant", "agent", "tool", "count", "first_requested_at", "last_requested_at", "jobs", "links",
    }  # fmt: skip
    assert b"s3cr3t" not in body


async def test_a_crash_before_the_log_is_told_again_under_the_same_alert(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked(scene)

    async def crash(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr("agentjobs.ledger.alerts.Alerts.unlogged", crash)
        with pytest.raises(ApplicationError):
            await look(scene, ScriptedSink())

    done = await look(scene, ScriptedSink(), attempt=SECOND)

    assert len(done.deliveries) == 1
    assert await scene.count("alerts") == 1


async def test_many_requests_are_summed_up_by_tool_and_a_late_one_is_told_by_itself(scene: Scene) -> None:
    for _ in range(SINGLES):
        await asked(scene)
    await asked(scene, "close_ticket")
    await look(scene)
    await asked(scene)

    await look(scene)

    assert await alerts(scene) == [
        ("approval.requested", "close_ticket", 1),
        ("approval.requested", "create_ticket", 1),
        ("approvals.requested", "create_ticket", SINGLES),
    ]


async def test_what_waits_no_more_and_what_waits_elsewhere_is_not_told(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("beta")
    decided, cancelled, late = [await asked(scene) for _ in range(3)]
    await asked(scene, tenant="beta")
    word = Word(decision=Decision.REJECT, actor="rita", note="no")
    assert await scene.ledger.approvals.decide("acme", decided, CREATE_TICKET, word)
    await scene.execute("UPDATE jobs SET cancel_requested_at = now() WHERE id = $1", cancelled)
    await scene.execute("UPDATE approvals SET expires_at = now() WHERE job_id = $1", late)

    await look(scene)

    assert await alerts(scene) == []


async def test_a_request_that_is_made_again_after_a_redrive_is_told_again(scene: Scene) -> None:
    job_id = await asked(scene)
    await look(scene)
    await scene.execute("UPDATE approvals SET expires_at = now()")
    await scene.execute("UPDATE jobs SET generation = 1 WHERE id = $1", job_id)

    await ask(scene, job_id)
    await look(scene)

    assert await alerts(scene) == [("approval.requested", "create_ticket", 1)] * 2


async def test_a_desk_that_has_told_nobody_for_a_minute_hears_of_it_again(scene: Scene) -> None:
    for _ in range(2):
        await asked(scene)
    await scene.execute("DELETE FROM outbox")
    at_once = await scene.ledger.alerts.tell_of_approvals_again()
    await scene.execute("UPDATE approvals SET requested_at = now() - interval '2 minutes'")

    again = [await scene.ledger.alerts.tell_of_approvals_again() for _ in range(2)]

    topics = await scene.topics()
    await scene.execute("DELETE FROM outbox")
    await look(scene)
    assert (at_once, again, topics) == (0, [1, 0], ["approval_requested"])
    assert await scene.ledger.alerts.tell_of_approvals_again() == 0


def test_its_incident_is_another_one_than_that_of_deaths() -> None:
    kinds = (AlertKind.JOB_DIED, AlertKind.APPROVAL_REQUESTED, AlertKind.APPROVALS_REQUESTED)

    keys = [alert(kind=kind).incident_key for kind in kinds]

    assert keys[0] != keys[1] == keys[2]
