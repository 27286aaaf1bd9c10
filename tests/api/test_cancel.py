"""Cancel: a wish, recorded once."""

import asyncio

import pytest
from httpx import AsyncClient

from agentjobs.domain.states import JobState
from tests.api.front import REQUEST, Front


async def test_a_pending_job_is_cancelled_at_once(front: Front, ann: AsyncClient) -> None:
    job = (await ann.post("/v1/jobs", json=REQUEST)).json()

    response = await ann.post(job["links"]["cancel"])

    assert response.status_code == 202
    assert response.json()["state"] == "cancelled"
    assert response.json()["cancel_requested_at"] is not None
    assert await front.scene.rows("SELECT actor, action, target FROM audit_log") == [
        {"actor": "ann", "action": "cancel", "target": job["id"]}
    ]


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.RETRY_WAIT, JobState.WAITING_APPROVAL])
async def test_of_a_job_on_its_way_the_wish_is_recorded(front: Front, ann: AsyncClient, state: JobState) -> None:
    job_id = (await front.scene.accept()).id
    await front.scene.move(job_id, state)

    response = await ann.post(f"/v1/jobs/{job_id}/cancel")

    assert response.status_code == 202
    assert response.json()["state"] == state
    assert response.json()["cancel_requested_at"] is not None
    assert await front.scene.topics() == ["start_job", "cancel_job"]


async def test_asking_twenty_times_is_one_wish(front: Front, ann: AsyncClient) -> None:
    job_id = await front.scene.running()

    answers = await asyncio.gather(*(ann.post(f"/v1/jobs/{job_id}/cancel") for _ in range(20)))

    assert {answer.status_code for answer in answers} == {202}
    assert await front.scene.topics() == ["start_job", "cancel_job"]
    assert await front.scene.count("audit_log") == 1


async def test_a_cancelled_job_stays_cancelled(front: Front, ann: AsyncClient) -> None:
    job_id = (await front.scene.accept()).id
    await front.scene.move(job_id, JobState.CANCELLED)

    response = await ann.post(f"/v1/jobs/{job_id}/cancel")

    assert (response.status_code, response.json()["state"]) == (202, "cancelled")


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.DISCARDED, JobState.DEAD])
async def test_a_job_that_is_over_or_dead_takes_no_cancel(front: Front, ann: AsyncClient, state: JobState) -> None:
    job_id = (await front.scene.accept()).id
    await front.scene.move(job_id, state)

    response = await ann.post(f"/v1/jobs/{job_id}/cancel")

    assert response.status_code == 409
    assert state in response.json()["detail"]
    assert await front.scene.topics() == ["start_job"]


async def test_another_users_job_cannot_be_cancelled(front: Front) -> None:
    job_id = (await front.scene.accept(user="ann")).id

    response = await front.of("ben").post(f"/v1/jobs/{job_id}/cancel")

    assert response.status_code == 404
    assert (await front.scene.job(job_id)).cancel_requested_at is None
