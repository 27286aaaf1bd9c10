"""What people do on the pages happens, as by the API."""

import pytest

from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.bulk import RedriveState
from agentjobs.domain.states import JobState
from agentjobs.ledger.identity import Role
from tests.console.scenery import TICKET, Scenery
from tests.console.visitors import Console, Visitor, checked, sign_in

PACE = {
    "canary": "2",
    "share_percent": "50",
    "rate_per_second": "0.5",
    "failure_percent": "20",
    "verdict_seconds": "60",
}


@pytest.fixture
async def rita(console: Console) -> Visitor:
    return await console.visitor("rita")


async def test_a_job_is_cancelled(console: Console) -> None:
    job_id = (await console.scene.accept()).id
    ann = await console.visitor("ann")

    answer = await ann.send(f"jobs/{job_id}/cancel")
    page = await ann.see(answer.headers["location"].removeprefix("/console/"))

    assert (await console.scene.job(job_id)).state is JobState.CANCELLED
    assert "The job was asked to stop." in page.text
    assert f"/console/jobs/{job_id}/cancel" not in page.actions


async def test_what_cannot_be_cancelled_says_why(console: Console) -> None:
    job_id = await console.scene.dead()
    ann = await console.visitor("ann")

    answer = await ann.send(f"jobs/{job_id}/cancel")

    assert answer.status_code == 409
    assert "a reviewer may discard or redrive it" in checked(answer).text


async def test_a_letter_is_redriven_with_all_that_the_form_says(console: Console, rita: Visitor) -> None:
    letter = await console.scene.dead(text="the old words")

    answer = await rita.send(
        f"dead/{letter}/redrive", note="she meant room 7", policy="current", text="the new\r\nwords", again="yes"
    )
    page = await rita.see(answer.headers["location"].removeprefix("/console/"))

    kept = await console.scene.letter(letter)
    events = await console.ledger.jobs.events(letter)
    assert (kept.state, kept.resolved_by, kept.note) == ("redrive_requested", "rita", "she meant room 7")
    assert events[-1].data["policy"] == "current"
    assert events[-1].data["again"] is True
    assert await console.ledger.dead_letters.read_input("acme", letter, actor="x") == "the new\nwords"
    assert "The redrive is on its way." in page.text


async def test_a_letter_is_discarded(console: Console, rita: Visitor) -> None:
    letter = await console.scene.dead()

    answer = await rita.send(f"dead/{letter}/discard", note="sent by mistake")

    kept = await console.scene.letter(letter)
    assert answer.status_code == 303
    assert (kept.state, kept.note) == ("discard_requested", "sent by mistake")


async def test_a_second_word_is_told_of_the_first(console: Console, rita: Visitor) -> None:
    letter = await console.scene.dead()
    await rita.send(f"dead/{letter}/redrive", note="once")

    answer = await rita.send(f"dead/{letter}/discard", note="twice")

    assert answer.status_code == 409
    assert "redrive_requested already" in checked(answer).text


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("redrive", {}),
        ("redrive", {"note": "   "}),
        ("redrive", {"note": "x", "tokens": "many"}),
        ("redrive", {"note": "x", "usd": "1e3"}),
        ("redrive", {"note": "x", "steps": "1.5"}),
        ("redrive", {"note": "x", "policy": "latest"}),
        ("discard", {}),
    ],
)
async def test_a_form_that_is_not_filled_in_is_refused(
    console: Console, rita: Visitor, path: str, values: dict[str, str]
) -> None:
    letter = await console.scene.dead()

    answer = await rita.send(f"dead/{letter}/{path}", **values)

    assert answer.status_code == 422
    checked(answer)
    assert (await console.scene.letter(letter)).state == "open"


async def test_a_bulk_redrive_is_tried_out_before_anything_is_done(console: Console, rita: Visitor) -> None:
    for _ in range(3):
        await console.scene.dead()

    preview = await rita.send("redrives/try", reason="access_denied", **PACE)

    page = checked(preview)
    assert "3 letters" in page.text
    assert "access denied support-triage 3" in page.text
    assert page.fields["canary"] == "2"
    assert await console.ledger.redrives.page("acme", state=None, before=None, limit=5) == []


async def test_the_form_of_the_preview_starts_just_that_once(console: Console, rita: Visitor) -> None:
    for _ in range(3):
        await console.scene.dead()
    fields = checked(await rita.send("redrives/try", reason="access_denied", again="yes", **PACE)).fields

    token = fields.pop("form_token")
    answers = [await rita.send("redrives", token, note="granted", **fields) for _ in range(2)]

    (made,) = await console.ledger.redrives.page("acme", state=None, before=None, limit=5)
    assert {answer.headers["location"] for answer in answers} == {
        f"/console/redrives/{made.id}?notice=bulk_started"
    }
    assert (made.created_by, made.note, made.again) == ("rita", "granted", True)
    assert (made.canary, made.share, made.rate_per_second, made.failure_limit) == (2, 0.5, 0.5, 0.2)


async def test_the_preview_keeps_all_that_the_filter_names(console: Console, rita: Visitor) -> None:
    letters = [await console.scene.dead() for _ in range(3)]
    version = (await console.scene.letter(letters[0])).policy_version
    await console.scene.execute("UPDATE dead_letters SET died_at = '2026-03-01 12:30Z' WHERE id = $1", letters[0])
    wanted = {
        "reason": "access_denied",
        "policy_version": version,
        "died_after": "2026-03-01T12:30",
        "died_before": "2026-03-01T13:30+01:00",
        "ids": f"{letters[0]}\r\n{letters[1]}, {letters[2]}",
    }

    nothing = checked(await rita.send("redrives/try", **wanted, **PACE))
    page = checked(await rita.send("redrives/try", **wanted | {"died_before": "2026-03-01T13:00"}, **PACE))
    await rita.send("redrives", page.fields.pop("form_token"), note="x", **page.fields)

    (made,) = await console.ledger.redrives.page("acme", state=None, before=None, limit=5)
    assert "0 letters" in nothing.text
    assert made.letters == 1
    assert made.filter.model_dump(mode="json", exclude_none=True) == {
        "reason": "access_denied",
        "policy_version": version,
        "died_after": "2026-03-01T12:30:00Z",
        "died_before": "2026-03-01T13:00:00Z",
        "ids": letters,
    }


async def test_a_time_that_is_none_is_refused(rita: Visitor) -> None:
    answer = await rita.send("redrives/try", died_after="yesterday", **PACE)

    assert answer.status_code == 422
    assert "Give a date and a time for died after." in checked(answer).text


async def test_a_preview_of_nothing_offers_nothing(rita: Visitor) -> None:
    page = checked(await rita.send("redrives/try", reason="bug", **PACE))

    assert "No open letter is like this" in page.text
    assert page.actions == ["/console/sign-out"]


async def test_a_bulk_redrive_takes_words(console: Console, rita: Visitor) -> None:
    scenery = Scenery(console.scene, most=1)
    await scenery.dead()
    redrive_id = await scenery.redrive()
    states = []

    for word in ("pause", "resume", "cancel"):
        await rita.send(f"redrives/{redrive_id}/{word}")
        record = await console.ledger.redrives.read("acme", redrive_id)
        assert record is not None
        states.append(record.state)
    page = await rita.see(f"redrives/{redrive_id}")

    assert states == [RedriveState.PAUSED, RedriveState.RUNNING, RedriveState.CANCELLED]
    assert page.actions == ["/console/sign-out"]


async def test_a_large_one_is_approved_by_somebody_else(console: Console, rita: Visitor) -> None:
    console.app.state.redrive_approval_above = 1
    for _ in range(2):
        await console.scene.dead()
    fields = checked(await rita.send("redrives/try", **PACE)).fields
    place = (await rita.send("redrives", fields.pop("form_token"), note="x", **fields)).headers["location"]
    path = place.removeprefix("/console/").partition("?")[0]
    key, _ = await console.ledger.identity.create_key("acme", "rolf", frozenset({Role.REVIEW}))
    rolf = console.stranger()
    await sign_in(rolf, key)

    refused = await rita.send(f"{path}/approve", note="mine")
    before = await rolf.see(path)
    approved = await rolf.send(f"{path}/approve", note="seen it")
    console.app.state.redrive_approval_above = 100

    record = await console.ledger.redrives.read("acme", path.removeprefix("redrives/"))
    assert record is not None
    assert "waits for a second person" in before.text
    assert (refused.status_code, approved.status_code) == (403, 303)
    assert (record.state, record.approved_by) == (RedriveState.RUNNING, "rolf")


@pytest.mark.parametrize(
    ("decision", "state"), [("approve", ApprovalState.APPROVED), ("reject", ApprovalState.REJECTED)]
)
async def test_a_call_is_decided_as_it_was_shown(
    console: Console, rita: Visitor, decision: str, state: ApprovalState
) -> None:
    job_id = await Scenery(console.scene).asked()
    path = f"jobs/{job_id}/approvals/{TICKET}"
    shown = (await rita.see(f"jobs/{job_id}")).fields["fingerprint"]

    other = await rita.send(path, decision=decision, note="x", fingerprint="0" * 64)
    answer = await rita.send(path, decision=decision, note="as agreed", fingerprint=shown)

    (asked,) = await console.ledger.approvals.of_job("acme", job_id)
    assert (other.status_code, answer.status_code) == (409, 303)
    assert (asked.state, asked.decided_by, asked.note) == (state, "rita", "as agreed")
