"""Reading: the status, the list page by page, every attempt."""

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.states import JobState
from tests.api.front import REQUEST, Front, pointers


async def ids_of(client: AsyncClient, **query: str | int) -> list[str]:
    response = await client.get("/v1/jobs", params=query)
    assert response.status_code == 200, response.text
    return [job["id"] for job in response.json()["items"]]


@pytest.mark.parametrize("state", list(JobState))
async def test_the_status_of_a_job_is_told_in_every_state(front: Front, ann: AsyncClient, state: JobState) -> None:
    job_id = (await front.scene.accept()).id
    await front.scene.move(job_id, state)

    response = await ann.get(f"/v1/jobs/{job_id}")

    job = response.json()
    assert response.status_code == 200
    assert job["state"] == state
    assert (job["failure"] is not None) == (state in {JobState.RETRY_WAIT, JobState.DEAD})


async def test_a_finished_job_tells_what_it_came_to(front: Front, ann: AsyncClient) -> None:
    scene = front.scene
    job_id = await scene.running()
    await scene.done(job_id, "step-1.create_ticket", {"ticket": 7})
    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    job = (await ann.get(f"/v1/jobs/{job_id}")).json()

    assert job["result"]["effects"] == [
        {
            **{"step": "step-1.create_ticket", "tool": "create_ticket", "state": "completed"},
            **{"outcome": "done", "because": None, "receipt": {"ticket": 7}},
        }
    ]
    assert job["finalized_at"].endswith("Z")


async def test_the_list_is_newest_first_and_comes_in_pages(front: Front, ann: AsyncClient) -> None:
    accepted = [(await front.scene.accept()).id for _ in range(5)]
    query: dict[str, Any] = {"limit": 2}
    pages = []

    while True:
        page = (await ann.get("/v1/jobs", params=query)).json()
        pages.append([job["id"] for job in page["items"]])
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [job_id for page in pages for job_id in page] == accepted[::-1]


async def test_jobs_of_the_same_moment_come_once_each(front: Front, ann: AsyncClient) -> None:
    accepted = {(await front.scene.accept()).id for _ in range(4)}
    await front.scene.execute("UPDATE jobs SET created_at = '2026-01-01T00:00:00Z'")

    first = (await ann.get("/v1/jobs", params={"limit": 3})).json()
    rest = await ids_of(ann, limit=3, cursor=first["next_cursor"])

    assert {job["id"] for job in first["items"]} | set(rest) == accepted
    assert len(rest) == 1


async def test_a_page_that_is_just_full_is_the_last(front: Front, ann: AsyncClient) -> None:
    for _ in range(2):
        await front.scene.accept()

    page = (await ann.get("/v1/jobs", params={"limit": 2})).json()

    assert page["next_cursor"] is None


async def test_the_list_can_be_narrowed(front: Front, ann: AsyncClient) -> None:
    pending = (await front.scene.accept()).id
    dead = await front.scene.dead()

    assert await ids_of(ann, state="dead") == [dead]
    assert await ids_of(ann, state="pending", agent="support-triage") == [pending]
    assert await ids_of(ann, agent="another") == []


async def test_a_user_sees_its_own_jobs_and_reviewer_and_admin_the_tenants(front: Front) -> None:
    anns = (await front.scene.accept(user="ann")).id
    bens = (await front.scene.accept(user="ben")).id
    await front.scene.accept(tenant="globex", user="ann")

    seen = {name: set(await ids_of(front.of(name))) for name in ("ann", "ben", "rita", "adam")}

    assert seen == {"ann": {anns}, "ben": {bens}, "rita": {anns, bens}, "adam": {anns, bens}}
    assert (await front.of("ben").get(f"/v1/jobs/{anns}")).status_code == 404
    assert (await front.of("rita").get(f"/v1/jobs/{anns}")).status_code == 200


async def test_every_attempt_is_told(front: Front, ann: AsyncClient) -> None:
    scene = front.scene
    job_id = await scene.running()
    await scene.fail(await scene.begin_attempt(job_id), release=False)

    response = await ann.get(f"/v1/jobs/{job_id}/attempts")

    told = [
        (one["step"], one["outcome"], one["category"], one["wait_seconds"]) for one in response.json()["items"]
    ]
    assert told == [
        ("plan", "succeeded", None, None),
        ("step-1.create_ticket", "failed", "unavailable", 30.0),
    ]


async def test_an_attempt_tells_what_it_cost_and_holds_back(front: Front, ann: AsyncClient) -> None:
    scene = front.scene
    job = await scene.accept()
    held = Reservation(tokens=10, usd=Decimal("0.5"))
    for number in (1, 2):
        attempt_id = await scene.begin_attempt(job.id, reserve=held, attempt=number)
    usage = Usage(tokens_in=7, tokens_out=2, usd=Decimal("0.25"))
    await scene.ledger.effects.complete(scene.intent(job.id), attempt_id, {}, usage=usage, model="m")

    items = (await ann.get(f"/v1/jobs/{job.id}/attempts")).json()["items"]
    status = (await ann.get(f"/v1/jobs/{job.id}")).json()

    held_back = [(one["outcome"], one["tokens_reserved"], one["usd_reserved"], one["usd"]) for one in items]
    assert held_back == [("crashed", 10, "0.500000", "0.000000"), ("succeeded", 0, "0.000000", "0.250000")]
    assert items[0]["id"] < items[1]["id"] == attempt_id
    assert {one["trace_id"] for one in items} == {job.trace_id} == {status["trace_id"]}
    assert status["usage"] == {
        **{"tokens_in": 7, "tokens_out": 2, "usd": "0.250000", "tokens_reserved": 10, "usd_reserved": "0.500000"}
    }


async def test_an_attempt_that_was_cut_off_is_told_as_abandoned(front: Front, ann: AsyncClient) -> None:
    job_id = (await front.scene.accept()).id
    attempt_id = await front.scene.begin_attempt(job_id)
    await front.ledger.effects.abandon_attempt(attempt_id)

    items = (await ann.get(f"/v1/jobs/{job_id}/attempts")).json()["items"]

    assert [(one["id"], one["outcome"], one["category"]) for one in items] == [(attempt_id, "abandoned", None)]


async def test_a_new_job_has_no_attempts(ann: AsyncClient) -> None:
    job = (await ann.post("/v1/jobs", json=REQUEST)).json()

    assert (await ann.get(job["links"]["attempts"])).json() == {"items": []}


def cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        *(
            (f"limit={value}", "query:limit")
            for value in ("0", "201", "-1", "x", "", "1.5", "2147483648", "9" * 5_000)
        ),
        *((f"state={value}", "query:state") for value in ("gone", "", "DEAD", "dead%00", "%ff")),
        *((f"agent={value}", "query:agent") for value in ("", "%00", "a%2fb", "x" * 65, "a%0a", "%ed%a0%80")),
        *((f"cursor={value}", "query:cursor") for value in ("", "x", "%00", "%F0%9F%98%A1", "x" * 301, "e30=")),
        ("cursor=" + cursor(["0001-01-01T00:00:00+14:00", "x"]), "query:cursor"),
        ("cursor=" + cursor(["2026-01-01T00:00:00", "x"]), "query:cursor"),
        ("cursor=" + cursor(["2026-01-01T00:00:00Z", "a/b"]), "query:cursor"),
        ("cursor=" + cursor(["2026-01-01T00:00:00Z", "a\n"]), "query:cursor"),
        ("cursor=" + cursor([1e300, "x"]), "query:cursor"),
        ("cursor=" + cursor([9223372036854775808, "x"]), "query:cursor"),
        ("cursor=" + cursor({"at": 1}), "query:cursor"),
        ("stat=dead", "query:"),
        ("tenant=globex", "query:"),
        ("limit=1&limit=2", "query:limit"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_query_that_cannot_be_taken_is_refused(ann: AsyncClient, query: str, pointer: str) -> None:
    response = await ann.get(f"/v1/jobs?{query}")

    assert pointers(response) == [pointer]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
async def test_a_cursor_from_the_edge_of_time_is_taken(ann: AsyncClient, at: str) -> None:
    assert await ids_of(ann, cursor=cursor([at, "x"])) == []
