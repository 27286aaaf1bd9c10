"""A redrive that changes the job: its input, its budget."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.job import Budget
from tests.api.front import Front, pointers
from tests.ledger.scene import CREATE_TICKET

NEW = {"note": "room 7", "input": {"text": "The printer in room 7 is on fire"}}


async def test_of_fifty_at_once_one_changes_the_input(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()

    answers = await asyncio.gather(*(rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NEW) for _ in range(50)))

    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 49
    assert await front.scene.count("input_changes") == 1
    assert (await front.scene.topics()).count("redrive_job") == 1


async def test_the_event_says_that_the_input_changed_and_not_how(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()

    await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NEW)

    event = (await front.ledger.jobs.events(job_id))[-1]
    assert event.data == {"generation": 1, "policy": "original", "again": False, "input_corrected": True}


async def test_a_job_that_is_not_dead_keeps_its_input(front: Front, rita: AsyncClient) -> None:
    running, redriven = await front.scene.running(), await front.scene.dead()
    await front.ledger.outcomes.resume(redriven, generation=1, policy_version="1")

    answers = [await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NEW) for job_id in (running, redriven)]

    assert [answer.status_code for answer in answers] == [404, 409]
    assert await front.scene.count("input_changes") == 0


async def test_a_job_that_is_being_undone_takes_no_other_input(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.running()
    await front.scene.begin(job_id, keys.undo_step(CREATE_TICKET), kind=EffectKind.UNDO)
    await front.scene.bury(job_id)

    response = await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=NEW)

    assert (response.status_code, response.json()["title"]) == (409, "Being undone")
    assert (await front.scene.letter(job_id)).state == "open"


@pytest.mark.parametrize("name", ["ann", "adam", "gus"])
async def test_others_change_nothing(front: Front, name: str) -> None:
    job_id = await front.scene.dead()

    response = await front.of(name).post(f"/v1/dead-letters/{job_id}/redrive", json=NEW)

    assert response.status_code in {403, 404}
    assert await front.scene.count("input_changes") == 0


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"input": {"text": " \n"}}, "/input/text"),
        ({"input": {"text": "x" * 100_001}}, "/input/text"),
        ({"input": {}}, "/input/text"),
        ({"input": "x"}, "/input"),
        ({"input": {"text": "x", "more": 1}}, "/input"),
        ({"budget": {"tokens": 0}}, "/budget/tokens"),
        ({"budget": {"tokens": 1_000}}, "/budget/tokens"),
        ({"budget": {"usd": "5"}}, "/budget/usd"),
        ({"budget": {"usd": True}}, "/budget/usd"),
        ({"budget": {"steps": 99}}, "/budget/steps"),
        ({"budget": {"seconds": 1}}, "/budget"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_cannot_be_taken_changes_nothing(
    front: Front, rita: AsyncClient, change: dict[str, Any], pointer: str
) -> None:
    job_id = (await front.scene.accept(budget=Budget(tokens=1_000, steps=2))).id
    await front.scene.bury(job_id)

    response = await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "x", **change})

    assert pointers(response) == [pointer]
    assert (await front.scene.letter(job_id)).state == "open"
    assert await front.scene.count("audit_log") == 0


async def test_a_budget_is_raised(front: Front, rita: AsyncClient) -> None:
    job_id = (await front.scene.accept(budget=Budget(tokens=1_000, steps=2))).id
    await front.scene.bury(job_id)

    await rita.post(
        f"/v1/dead-letters/{job_id}/redrive", json={"note": "worth it", "budget": {"tokens": 2_000, "steps": 3}}
    )

    job = (await front.of("ann").get(f"/v1/jobs/{job_id}")).json()
    assert job["budget"] == {"tokens": 2_000, "usd": None, "steps": 3}
