"""Dead letters: a reviewer reads them, and says once what becomes of each."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category
from tests.api.front import UI, UNKNOWN, Front, pointers
from tests.ledger.scene import RESERVE_TEN

MODEL_CALL = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}
NOTE = {"note": "the grant is in place now"}


async def test_a_dead_letter_tells_what_a_person_needs(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()

    letter = (await rita.get("/v1/dead-letters")).json()["items"][0]

    assert (letter["id"], letter["state"], letter["generation"]) == (job_id, "open", 1)
    assert (letter["reason"], letter["step"], letter["worker"]) == ("access_denied", "step-1.create_ticket", "w1")
    assert (letter["submitted_by"], letter["origin"], letter["worker_build"]) == ("ann", "test", None)
    assert letter["links"] == {
        "self": f"/v1/dead-letters/{job_id}",
        "job": f"/v1/jobs/{job_id}",
        "redrive": f"/v1/dead-letters/{job_id}/redrive",
        "discard": f"/v1/dead-letters/{job_id}/discard",
        "temporal_ui": f"{UI}/namespaces/default/workflows/agent-job-{job_id}",
    }


async def test_the_list_holds_no_input(front: Front, rita: AsyncClient) -> None:
    await front.scene.dead(text="something private")

    response = await rita.get("/v1/dead-letters")

    assert "private" not in response.text


async def test_each_reading_of_the_input_is_on_record(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead(text="something private")

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    assert letter["input"] == {"text": "something private"}
    assert await front.scene.rows("SELECT tenant, actor, action, target FROM audit_log") == [
        {"tenant": "acme", "actor": "rita", "action": "read_dead_letter", "target": job_id}
    ]


async def test_a_letter_tells_what_was_spent_on_what(front: Front, rita: AsyncClient) -> None:
    scene = front.scene
    job_id = await scene.running()
    attempts = [
        await scene.begin_attempt(job_id, "step-1.model", **MODEL_CALL, attempt=number, reserve=RESERVE_TEN)
        for number in (1, 2)
    ]
    await scene.fail(attempts[0], release=False)  # crashed for the ledger: the second one began
    usage = Usage(tokens_in=7, tokens_out=2, usd=Decimal("0.25"))
    await scene.ledger.effects.complete(
        scene.intent(job_id, "step-1.model", **MODEL_CALL), attempts[1], {}, usage=usage, model="m"
    )
    await scene.bury(job_id, reason=Category.BUDGET_EXCEEDED)

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    nothing = {"tokens_in": 0, "tokens_out": 0, "usd": "0.000000", "usd_reserved": "0.000000"}
    assert letter["spent"] == [
        {**nothing, "step": "step-1.model", "model": None, "attempts": 1, "tokens_reserved": 10},
        {
            **{"step": "step-1.model", "model": "m", "attempts": 1, "tokens_in": 7, "tokens_out": 2},
            **{"usd": "0.250000", "tokens_reserved": 0, "usd_reserved": "0.000000"},
        },
    ]


async def test_a_job_that_cost_nothing_has_spent_nothing(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.running()
    await front.scene.bury(job_id)

    assert (await rita.get(f"/v1/dead-letters/{job_id}")).json()["spent"] == []


async def test_the_list_comes_in_pages_and_can_be_narrowed(front: Front, rita: AsyncClient) -> None:
    dead = [await front.scene.dead() for _ in range(3)]
    bug = (await front.scene.accept()).id
    await front.scene.bury(bug, reason=Category.BUG)

    first = (await rita.get("/v1/dead-letters", params={"limit": 2})).json()
    second = (await rita.get("/v1/dead-letters", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    narrowed = (await rita.get("/v1/dead-letters", params={"reason": "bug", "agent": "support-triage"})).json()

    assert [letter["id"] for letter in first["items"] + second["items"]] == [bug, *dead[::-1]]
    assert second["next_cursor"] is None
    assert [letter["id"] for letter in narrowed["items"]] == [bug]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("reason=gone", "query:reason"),
        ("reason=%00", "query:reason"),
        ("agent=%00", "query:agent"),
        ("limit=0", "query:limit"),
        ("limit=201", "query:limit"),
        ("cursor=x", "query:cursor"),
        ("state=open", "query:"),
    ],
)
async def test_a_query_that_cannot_be_taken_is_refused(rita: AsyncClient, query: str, pointer: str) -> None:
    assert pointers(await rita.get(f"/v1/dead-letters?{query}")) == [pointer]


async def test_the_report_counts(front: Front, rita: AsyncClient) -> None:
    first = await front.scene.dead()
    await front.scene.dead()
    await front.scene.dead(tenant="globex")
    await rita.post(f"/v1/dead-letters/{first}/discard", json=NOTE)

    report = (await rita.get("/v1/dead-letters/report")).json()

    line = report["open"][0]
    assert (line["reason"], line["agent"], line["policy_version"]) == ("access_denied", "support-triage", "1")
    assert report["open_count"] == line["count"] == 2
    assert report["by_state"] == {"open": 1, "discard_requested": 1}


async def test_a_report_of_nothing_is_empty(rita: AsyncClient) -> None:
    report = (await rita.get("/v1/dead-letters/report")).json()

    assert (report["open"], report["by_state"], report["open_count"], report["oldest_at"]) == ([], {}, 0, None)
    assert {flow["died"] for flow in report["flow"]} == {0}


@pytest.mark.parametrize(
    ("hours", "unit", "slots"), [(1, "hour", 2), (72, "hour", 73), (73, "day", 4), (48, "hour", 49)]
)
async def test_the_window_is_told_by_the_hour_or_by_the_day(
    front: Front, rita: AsyncClient, hours: int, unit: str, slots: int
) -> None:
    await front.scene.dead()

    report = (await rita.get("/v1/dead-letters/report", params={"window_hours": hours})).json()

    assert report["unit"] == unit
    assert slots <= len(report["flow"]) <= slots + (unit == "day")
    assert sum(flow["died"] for flow in report["flow"]) == 1


@pytest.mark.parametrize("window", ["0", "2161", "x", "1.5"])
async def test_a_window_that_cannot_be_taken_is_refused(rita: AsyncClient, window: str) -> None:
    assert pointers(await rita.get(f"/v1/dead-letters/report?window_hours={window}")) == ["query:window_hours"]


@pytest.mark.parametrize(
    ("verb", "body", "payload"),
    [
        ("redrive", NOTE, {"generation": 1, "policy": "original", "again": False}),
        ("redrive", {**NOTE, "policy": "current"}, {"generation": 1, "policy": "current", "again": False}),
        ("redrive", {**NOTE, "again": True}, {"generation": 1, "policy": "original", "again": True}),
        ("discard", NOTE, {"generation": 1}),
    ],
)
async def test_a_word_is_recorded_and_queued(
    front: Front, rita: AsyncClient, verb: str, body: dict[str, Any], payload: dict[str, Any]
) -> None:
    job_id = await front.scene.dead()

    response = await rita.post(f"/v1/dead-letters/{job_id}/{verb}", json=body)

    letter = response.json()
    assert response.status_code == 202
    assert (letter["state"], letter["resolved_by"], letter["note"]) == (f"{verb}_requested", "rita", NOTE["note"])
    assert await front.scene.rows("SELECT payload FROM outbox WHERE topic = $1", f"{verb}_job") == [
        {"payload": payload}
    ]
    chosen = {name: value for name, value in payload.items() if name != "generation"}
    assert await front.scene.rows("SELECT actor, action, target, note, details FROM audit_log") == [
        {
            "actor": "rita",
            "action": "redrive_again" if payload.get("again") else verb,
            "target": job_id,
            "note": NOTE["note"],
            "details": chosen,
        }
    ]
    event = (await front.ledger.jobs.events(job_id))[-1]
    assert (event.type, event.data) == (f"{verb}_requested", payload)


async def test_the_version_that_a_job_goes_on_with_is_on_record(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={**NOTE, "policy": "current"})

    await front.ledger.outcomes.resume(job_id, generation=1, policy_version="2")

    asked, done = (await front.ledger.jobs.events(job_id))[-2:]
    assert (asked.type, asked.data["policy"]) == ("redrive_requested", "current")
    assert (done.type, done.data) == ("redriven", {"generation": 1, "policy_version": "2"})


@pytest.mark.parametrize("first", ["redrive", "discard"])
@pytest.mark.parametrize("second", ["redrive", "discard"])
async def test_only_an_open_letter_takes_a_word(front: Front, rita: AsyncClient, first: str, second: str) -> None:
    job_id = await front.scene.dead()
    await rita.post(f"/v1/dead-letters/{job_id}/{first}", json=NOTE)

    response = await rita.post(f"/v1/dead-letters/{job_id}/{second}", json=NOTE)

    assert response.status_code == 409
    assert f"{first}_requested" in response.json()["detail"]
    assert await front.scene.topics() == ["start_job", "job_died", f"{first}_job"]


async def test_of_twenty_at_once_one_word_is_heard(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()

    answers = await asyncio.gather(
        *(rita.post(f"/v1/dead-letters/{job_id}/{verb}", json=NOTE) for verb in ["redrive", "discard"] * 10)
    )

    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 19
    assert len(await front.scene.topics()) == 3


async def test_a_letter_that_died_again_takes_a_new_word(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NOTE)
    await front.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await front.scene.bury(job_id, generation=1)

    response = await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NOTE)

    assert (response.status_code, response.json()["generation"]) == (202, 2)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/note"),
        ({"note": ""}, "/note"),
        ({"note": " \u200b\n"}, "/note"),
        ({"note": "x" * 1_001}, "/note"),
        ({"note": 7}, "/note"),
        ({"note": "x", "policy": "newest"}, "/policy"),
        ({"note": "x", "generation": 1}, ""),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_word_that_cannot_be_taken_changes_nothing(
    front: Front, rita: AsyncClient, body: dict[str, Any], pointer: str
) -> None:
    job_id = await front.scene.dead()

    response = await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=body)

    assert pointers(response) == [pointer]
    assert (await front.scene.letter(job_id)).state == "open"


async def test_a_job_that_is_not_dead_has_no_letter(front: Front, rita: AsyncClient) -> None:
    job_id = (await front.scene.accept()).id

    answers = [
        await rita.get(f"/v1/dead-letters/{job_id}"),
        await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NOTE),
        await rita.post(f"/v1/dead-letters/{UNKNOWN}/discard", json=NOTE),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert await front.scene.count("audit_log") == 0
