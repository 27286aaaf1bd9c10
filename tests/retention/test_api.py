"""Erasure by HTTP: who may, what is answered, and what an erased job is from then on."""

import pytest
from httpx import AsyncClient

from agentjobs.domain.states import JobState
from tests.api.front import Front, check_problem
from tests.retention.planting import CALL_OUTSIDE, CANARY, discarded, ended_days_ago, places_of, planted, succeeded
from tests.retention.test_expiry import POLICY

KEYED = {"Idempotency-Key": '"k1"'}


async def test_an_ended_job_is_erased_when_the_answer_is_there(front: Front, adam: AsyncClient) -> None:
    job_id = await planted(front.scene)
    await discarded(front.scene, job_id)

    answer = await adam.delete(f"/v1/jobs/{job_id}")
    told = answer.json()

    assert answer.status_code == 202
    assert answer.headers["location"] == told["links"]["self"] == f"/v1/erasures/{told['id']}"
    assert (told["job_id"], told["user"], told["requested_by"]) == (job_id, None, "adam")
    assert told["jobs"] == {"total": 1, "erased": 1, "not_ended": 0, "workflows_left": 1}
    assert told["completed_at"] is None
    assert await places_of(front.scene, CANARY) == set()


async def test_it_is_completed_when_its_workflow_is_gone_too(front: Front, adam: AsyncClient) -> None:
    job_id = await succeeded(front.scene)
    where = (await adam.delete(f"/v1/jobs/{job_id}")).headers["location"]
    await front.ledger.retention.workflows_are_gone([job_id])
    for erasure in await front.ledger.erasures.under_way():
        await front.ledger.erasures.advance(erasure)

    told = (await adam.get(where)).json()

    assert told["completed_at"] is not None
    assert told["jobs"]["workflows_left"] == 0


async def test_what_is_left_outside_is_named_with_its_key(front: Front, adam: AsyncClient) -> None:
    job_id = await planted(front.scene)
    await discarded(front.scene, job_id)

    told = (await adam.delete(f"/v1/jobs/{job_id}")).json()

    key = f"agent-job-{job_id}/{CALL_OUTSIDE}"
    assert told["left_outside"] == [
        {"job_id": job_id, "step": CALL_OUTSIDE, "tool": "page_somebody", "key": key, "state": "completed"}
    ]
    assert told["left_outside_count"] == 1
    assert any("model providers" in line for line in told["not_covered"])


async def test_a_live_job_is_cancelled_first(front: Front, adam: AsyncClient) -> None:
    job_id = await front.scene.running()

    answer = await adam.delete(f"/v1/jobs/{job_id}")

    assert (answer.status_code, check_problem(answer)["type"]) == (409, "urn:agentjobs:problem:job_is_live")
    assert "cancel it" in answer.json()["detail"]


async def test_a_dead_job_is_discarded_first(front: Front, adam: AsyncClient) -> None:
    job_id = await planted(front.scene)

    told = (await adam.delete(f"/v1/jobs/{job_id}")).json()

    assert told["jobs"] == {"total": 1, "erased": 0, "not_ended": 1, "workflows_left": 0}
    assert (await front.scene.letter(job_id)).state == "discard_requested"


@pytest.mark.parametrize("path", ["", "/attempts", "/events"])
async def test_who_could_see_an_erased_job_is_told_that_it_is_gone(
    front: Front, adam: AsyncClient, ann: AsyncClient, path: str
) -> None:
    job_id = await succeeded(front.scene)
    await adam.delete(f"/v1/jobs/{job_id}")

    own = await ann.get(f"/v1/jobs/{job_id}{path}")
    others = [await front.of(name).get(f"/v1/jobs/{job_id}{path}") for name in ("ben", "gus")]

    assert (own.status_code, check_problem(own)["type"]) == (410, "urn:agentjobs:problem:erased")
    assert [other.status_code for other in others] == [404, 404]


async def test_nothing_is_done_with_an_erased_job(front: Front, adam: AsyncClient, rita: AsyncClient) -> None:
    job_id = await planted(front.scene)
    await discarded(front.scene, job_id)
    await adam.delete(f"/v1/jobs/{job_id}")

    answers = [
        await adam.delete(f"/v1/jobs/{job_id}"),
        await rita.get(f"/v1/dead-letters/{job_id}"),
        await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "n", "budget": {"steps": 3}}),
        await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "n"}),
        await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "n", "input": {"text": "x"}}),
        await rita.post(f"/v1/dead-letters/{job_id}/discard", json={"note": "n"}),
    ]

    assert [answer.status_code for answer in answers] == [410] * 6
    assert (await rita.get("/v1/jobs")).json()["items"] == []


async def test_the_key_of_an_erased_job_answers_410_also_for_another_body(
    front: Front, adam: AsyncClient, ann: AsyncClient
) -> None:
    body = {"input": {"text": "once"}}
    job_id = (await ann.post("/v1/jobs", json=body, headers=KEYED)).json()["id"]
    await ann.post(f"/v1/jobs/{job_id}/cancel")
    await adam.delete(f"/v1/jobs/{job_id}")

    answers = [
        await ann.post("/v1/jobs", json=body, headers=KEYED),
        await ann.post("/v1/jobs", json={"input": {"text": "twice"}}, headers=KEYED),
    ]

    assert [(answer.status_code, check_problem(answer)["type"]) for answer in answers] == [
        (410, "urn:agentjobs:problem:erased")
    ] * 2
    assert await front.scene.count("jobs") == 1


async def test_a_users_erasure_is_ordered_once_more_without_harm(front: Front, adam: AsyncClient) -> None:
    await succeeded(front.scene)
    answers = [await adam.post("/v1/erasures", json={"user": "ann"}) for _ in range(2)]
    for erasure in await front.ledger.erasures.under_way():
        await front.ledger.erasures.advance(erasure)

    shown = [(await adam.get(answer.headers["location"])).json() for answer in answers]

    assert [answer.status_code for answer in answers] == [202, 202]
    assert [one["jobs"]["erased"] for one in shown] == [1, 1]
    assert await places_of(front.scene, CANARY) == set()


async def test_erasures_are_for_admins_of_the_tenant(front: Front, adam: AsyncClient) -> None:
    job_id = await succeeded(front.scene)
    mine = (await adam.post("/v1/erasures", json={"user": "ben"})).json()["id"]
    gus = front.of("gus")

    refused = [
        *[await front.of(name).delete(f"/v1/jobs/{job_id}") for name in ("ann", "rita")],
        *[await front.of(name).post("/v1/erasures", json={"user": "ann"}) for name in ("ann", "rita")],
        *[await front.of(name).get(f"/v1/erasures/{mine}") for name in ("ann", "rita")],
    ]
    foreign = [await gus.delete(f"/v1/jobs/{job_id}"), await gus.get(f"/v1/erasures/{mine}")]
    await gus.post("/v1/erasures", json={"user": "ann"})
    for erasure in await front.ledger.erasures.under_way():
        await front.ledger.erasures.advance(erasure)

    assert {answer.status_code for answer in refused} == {403}
    assert [answer.status_code for answer in foreign] == [404, 404]
    assert (await front.scene.job(job_id)).erased_at is None


async def test_a_job_whose_content_has_expired_is_shown_without_it(front: Front, ann: AsyncClient) -> None:
    job_id = await succeeded(front.scene)
    await ended_days_ago(front.scene, [job_id], 31)
    before = (await ann.get(f"/v1/jobs/{job_id}")).json()
    await front.ledger.retention.sweep(POLICY)

    after = (await ann.get(f"/v1/jobs/{job_id}")).json()

    assert before["result"]["answer"] == f"{CANARY} answer"
    assert before["content_removed_at"] is None
    assert after["content_removed_at"] is not None
    assert after["result"] == {"answer": None, "plan": None, "effects": []}
    assert (after["state"], after["usage"]) == (JobState.SUCCEEDED, before["usage"])


async def test_a_letter_whose_content_has_expired_is_still_shown(front: Front, rita: AsyncClient) -> None:
    job_id = await planted(front.scene)
    await discarded(front.scene, job_id)
    await ended_days_ago(front.scene, [job_id], 31)
    await front.ledger.retention.sweep(POLICY)

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    assert (letter["state"], letter["message"], letter["note"]) == ("discarded", "(removed)", "(removed)")
    assert letter["input"] == {"text": ""}
    assert (letter["effects_done"], letter["input_changes"], len(letter["deaths"])) == ([], [], 2)
