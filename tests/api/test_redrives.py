"""Bulk redrives over HTTP: tried out, started, watched, steered, and approved by a second person."""

from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.identity import Role
from tests.api.front import UNKNOWN, Front, pointers, told
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL

PATH = "/v1/redrives"
START = {"filter": {}, "note": "the grant is in place"}
NONE = {
    **{"waiting": 0, "asked": 0, "recovered": 0, "died_again": 0, "cancelled": 0, "no_verdict": 0},
    **{"not_taken": 0, "skipped": 0},
}


async def reviewer(front: Front, user: str, tenant: str = "acme") -> AsyncClient:
    key, _ = await front.ledger.identity.create_key(tenant, user, frozenset({Role.REVIEW}))
    return front.with_key(key)


@pytest.fixture
async def careful(front: Front) -> Front:
    """The same callers, at an API that lets nobody redrive more than one letter alone."""
    app = create_app(front.ledger, built_in_agents(), redrive_approval_above=1)
    return Front(app, front.ledger, front.keys)


async def test_it_is_accepted_and_says_where_it_stands(front: Front, rita: AsyncClient) -> None:
    for _ in range(3):
        await front.scene.dead()

    answer = await rita.post(PATH, json=START)

    shown = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"{PATH}/{shown['id']}" == shown["links"]["self"]
    assert (shown["state"], shown["stage"], shown["letters"]) == ("running", "canary", 3)
    assert shown["items"] == {**NONE, "waiting": 3}
    assert (shown["created_by"], shown["note"], shown["filter"]) == ("rita", START["note"], {})
    assert shown["approval"] == {"needed": False, "by": None, "at": None, "note": None}
    assert shown["links"]["temporal_ui"].endswith(f"/bulk-redrive-{shown['id']}")
    assert (await rita.get(answer.headers["location"])).json() == shown


async def test_the_counts_follow_the_letters(front: Front, rita: AsyncClient) -> None:
    jobs = [await front.scene.dead() for _ in range(4)]
    redrive_id = (await rita.post(PATH, json={**START, "canary": 2})).json()["id"]
    await front.ledger.dead_letters.request("discard", "acme", jobs[0], actor="x", note="n", payload={})
    await front.ledger.redrives.ask(redrive_id, up_to=2)
    await front.ledger.outcomes.resume(jobs[1], generation=1, policy_version="1")
    await front.ledger.outcomes.finish(jobs[1], JobState.SUCCEEDED)

    shown = (await rita.get(f"{PATH}/{redrive_id}")).json()

    assert shown["items"] == {**NONE, "waiting": 1, "asked": 1, "recovered": 1, "skipped": 1}
    assert (shown["skipped"], shown["asked"]) == ({"discard_requested": 1}, 2)


async def test_a_dry_run_tells_and_changes_nothing(front: Front, rita: AsyncClient) -> None:
    for _ in range(2):
        await front.scene.dead()
    done = await front.scene.running()
    await front.scene.done(done, CREATE_TICKET, {"ticket": 1})
    await front.scene.bury(done, reason=Category.TIMEOUT)
    doubtful = await front.scene.running()
    await front.scene.begin(doubtful, CREATE_TICKET, effect_class=EffectClass.UNSAFE)
    await front.scene.bury(doubtful, reason=Category.OUTCOME_UNKNOWN)

    answer = await rita.post(PATH, json={"filter": {}, "dry_run": True})
    with_again = (await rita.post(PATH, json={"filter": {}, "dry_run": True, "again": True})).json()

    assert answer.status_code == 200
    assert answer.json() == {
        "letters": 3,
        "by_kind": [
            {"reason": "access_denied", "agent": "support-triage", "count": 2},
            {"reason": "timeout", "agent": "support-triage", "count": 1},
        ],
        "effects_done": {"create_ticket": 1},
        "in_doubt": [
            {"id": doubtful, "reason": "outcome_unknown", "steps": ["step-1.create_ticket"], "unsafe": True}
        ],
        "in_doubt_count": 1,
        "left_out": {"in_doubt": 1, "in_another_redrive": 0, "beyond_limit": 0},
        "needs_approval": False,
    }
    assert (with_again["letters"], with_again["left_out"]["in_doubt"]) == (4, 0)
    assert (await front.scene.count("redrives"), await front.scene.count("audit_log")) == (0, 0)


async def test_a_dry_run_foretells_what_is_taken(front: Front, rita: AsyncClient) -> None:
    await front.scene.dead()
    await rita.post(PATH, json=START)
    for _ in range(2):
        await front.scene.dead()

    told = (await rita.post(PATH, json={"filter": {}, "dry_run": True})).json()
    started = (await rita.post(PATH, json=START)).json()

    assert (told["letters"], started["letters"]) == (2, 2)
    assert told["left_out"]["in_another_redrive"] == 1


async def test_nothing_to_take_is_a_conflict(rita: AsyncClient) -> None:
    answer = await rita.post(PATH, json=START)

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:agentjobs:problem:no_letters")


async def test_a_note_is_needed(front: Front, rita: AsyncClient) -> None:
    await front.scene.dead()

    assert pointers(await rita.post(PATH, json={"filter": {}})) == ["/note"]
    assert await front.scene.count("redrives") == 0


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"filter": {"reason": "bad luck"}}, "/filter/reason"),
        ({"filter": {"ids": []}}, "/filter/ids"),
        ({"filter": {"ids": ["a/b"]}}, "/filter/ids/0"),
        ({"filter": {"died_before": "yesterday"}}, "/filter/died_before"),
        ({"filter": {"died_before": "2026-01-01T00:00:00"}}, "/filter/died_before"),
        ({"filter": {"raeson": "bug"}}, "/filter"),
        ({"note": " \t"}, "/note"),
        ({"policy": "newest"}, "/policy"),
        ({"canary": 0}, "/canary"),
        ({"canary": True}, "/canary"),
        ({"share": 0}, "/share"),
        ({"share": 1.01}, "/share"),
        ({"rate_per_second": 0}, "/rate_per_second"),
        ({"rate_per_second": 51}, "/rate_per_second"),
        ({"failure_limit": -0.1}, "/failure_limit"),
        ({"verdict_seconds": 4}, "/verdict_seconds"),
        ({"dry_run": "yes"}, "/dry_run"),
    ],
    ids=str,
)
async def test_what_cannot_be_taken_is_named(
    front: Front, rita: AsyncClient, changes: dict[str, Any], pointer: str
) -> None:
    await front.scene.dead()

    assert pointers(await rita.post(PATH, json={**START, **changes})) == [pointer]
    assert await front.scene.count("redrives") == 0


async def test_every_filter_is_understood(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    every = {
        "reason": "access_denied",
        "agent": "support-triage",
        "policy_version": "1",
        "died_before": "2100-01-01T00:00:00+02:00",
        "died_after": "2020-01-01T00:00:00Z",
        "ids": [job_id],
    }

    answer = await rita.post(PATH, json={**START, "filter": every})

    assert answer.status_code == 202
    assert answer.json()["filter"] == {**every, "died_before": "2099-12-31T22:00:00Z"}


async def test_one_key_makes_one_bulk_redrive(front: Front, rita: AsyncClient) -> None:
    for _ in range(2):
        await front.scene.dead()
    key = {"Idempotency-Key": '"monday"'}

    answers = [await rita.post(PATH, json=START, headers=key) for _ in range(2)]
    other = await rita.post(PATH, json={**START, "canary": 2}, headers=key)

    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert (other.status_code, other.json()["type"]) == (422, "urn:agentjobs:problem:idempotency_key_reused")


async def test_it_can_be_paused_resumed_and_cancelled(front: Front, rita: AsyncClient) -> None:
    await front.scene.dead()
    here = f"{PATH}/{(await rita.post(PATH, json=START)).json()['id']}"

    words = ["pause", "pause", "resume", "pause", "cancel", "cancel"]
    answers = [await rita.post(f"{here}/{word}") for word in words]
    too_late = [await rita.post(f"{here}/{word}") for word in ("pause", "resume")]

    assert [answer.status_code for answer in answers] == [200] * 6
    assert [answer.json()["state"] for answer in answers] == [
        *("paused", "paused", "running", "paused", "cancelled", "cancelled"),
    ]
    assert [answer.status_code for answer in too_late] == [409, 409]
    assert "cancelled" in too_late[0].json()["detail"]
    assert answers[-1].json()["finished_at"] is not None


async def test_a_large_one_waits_for_another_reviewer(careful: Front) -> None:
    for _ in range(2):
        await careful.scene.dead()
    rita, rolf = careful.of("rita"), await reviewer(careful, "rolf")
    told = (await rita.post(PATH, json={"filter": {}, "dry_run": True})).json()

    shown = (await rita.post(PATH, json=START)).json()
    here = f"{PATH}/{shown['id']}/approve"
    by_herself = await rita.post(here, json={"note": "surely"})
    by_submitter = await careful.of("ann").post(here, json={"note": "surely"})
    of_others = await careful.of("gus").post(here, json={"note": "surely"})
    without_note = await rolf.post(here, json={})
    approved = await rolf.post(here, json={"note": "seen it"})
    again = await rolf.post(here, json={"note": "seen it"})

    assert (told["needs_approval"], shown["state"], shown["approval"]["needed"]) == (
        True,
        "awaiting_approval",
        True,
    )
    assert (by_herself.status_code, by_herself.json()["type"]) == (
        403,
        "urn:agentjobs:problem:second_person_needed",
    )
    assert (by_submitter.status_code, of_others.status_code) == (403, 404)
    assert pointers(without_note) == ["/note"]
    assert (approved.status_code, approved.json()["state"]) == (200, "running")
    assert {**approved.json()["approval"], "at": None} == {
        "needed": True,
        "by": "rolf",
        "at": None,
        "note": "seen it",
    }
    assert again.status_code == 409
    await careful.close()


async def test_another_key_of_the_same_person_is_no_second_person(careful: Front) -> None:
    for _ in range(2):
        await careful.scene.dead()
    redrive_id = (await careful.of("rita").post(PATH, json=START)).json()["id"]

    answer = await (await reviewer(careful, "rita")).post(f"{PATH}/{redrive_id}/approve", json={"note": "me"})

    assert answer.status_code == 403
    await careful.close()


async def test_the_list_is_the_tenants_newest_first(front: Front, rita: AsyncClient) -> None:
    made = []
    for _ in range(3):
        await front.scene.dead()
        made.append((await rita.post(PATH, json=START)).json()["id"])
    await rita.post(f"{PATH}/{made[0]}/cancel")

    first = (await rita.get(PATH, params={"limit": 2})).json()
    second = (await rita.get(PATH, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    cancelled = (await rita.get(PATH, params={"state": "cancelled"})).json()
    of_others = (await front.of("gus").get(PATH)).json()

    assert [item["id"] for item in [*first["items"], *second["items"]]] == made[::-1]
    assert [item["id"] for item in cancelled["items"]] == made[:1]
    assert (second["next_cursor"], of_others["items"]) == (None, [])


async def test_another_tenants_is_as_unknown_as_any(front: Front, rita: AsyncClient) -> None:
    await front.scene.dead()
    redrive_id = (await rita.post(PATH, json=START)).json()["id"]
    gus = front.of("gus")

    foreign = [await gus.post(f"{PATH}/{redrive_id}/{word}") for word in ("pause", "cancel")]
    unknown = await gus.get(f"{PATH}/{UNKNOWN}")

    assert [answer.status_code for answer in [*foreign, unknown]] == [404, 404, 404]
    assert told(foreign[0]) == told(unknown)
    assert (await rita.get(f"{PATH}/{redrive_id}")).json()["state"] == "running"


async def test_letters_of_another_tenant_are_not_taken(front: Front) -> None:
    job_id = await front.scene.dead()

    answer = await front.of("gus").post(PATH, json={**START, "filter": {"ids": [job_id]}})

    assert answer.status_code == 409
    assert (await front.scene.letter(job_id)).state == "open"


async def test_the_request_itself_is_never_shown(front: Front, rita: AsyncClient) -> None:
    job_id = (await front.scene.accept(text="hunter2canary")).id
    await front.scene.done(job_id, "plan", {"text": "hunter2canary"}, **MODEL_CALL)
    await front.scene.bury(job_id)

    tried = await rita.post(PATH, json={"filter": {}, "dry_run": True})
    started = await rita.post(PATH, json=START)

    assert "hunter2canary" not in tried.text + started.text
