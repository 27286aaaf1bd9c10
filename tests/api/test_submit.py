"""Submission: accepted durably with what was asked for, or refused with what to do."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.domain.job import MAX_DEADLINE_SECONDS, TEXT_LIMIT
from tests.api.front import REQUEST, UI, Front, pointers

Body = dict[str, Any]


async def test_a_request_is_accepted_as_a_pending_job(front: Front, ann: AsyncClient) -> None:
    response = await ann.post("/v1/jobs", json=REQUEST)

    job = response.json()
    assert response.status_code == 202
    assert response.headers["location"] == job["links"]["self"] == f"/v1/jobs/{job['id']}"
    assert response.headers["retry-after"] == "1"
    assert (job["state"], job["agent"], job["priority"], job["policy_version"]) == (
        *("pending", "support-triage", 3),
        "1",
    )
    assert job["links"]["temporal_ui"] == f"{UI}/namespaces/default/workflows/agent-job-{job['id']}"
    assert await front.scene.topics() == ["start_job"]


async def test_what_was_asked_for_is_kept(front: Front, ann: AsyncClient) -> None:
    wanted = {
        "agent": "support-triage",
        "input": {"text": "Grüße 😡\nzwei"},
        "deadline_seconds": 60,
        "budget": {"tokens": 7, "usd": "0.25", "steps": 2},
        "priority": 1,
    }

    job = (await ann.post("/v1/jobs", json=wanted)).json()

    stored = await front.scene.rows('SELECT input, "user", tenant, origin FROM jobs')
    deadline = datetime.fromisoformat(job["deadline_at"]) - datetime.fromisoformat(job["created_at"])
    assert stored == [{"input": {"text": "Grüße 😡\nzwei"}, "user": "ann", "tenant": "acme", "origin": "api"}]
    assert job["budget"] == {"tokens": 7, "usd": "0.250000", "steps": 2}
    assert job["priority"] == 1
    assert deadline == timedelta(seconds=60)


async def test_a_limit_that_is_not_named_is_the_agents_own(ann: AsyncClient) -> None:
    job = (await ann.post("/v1/jobs", json={**REQUEST, "budget": {"usd": 0.5}})).json()

    assert job["budget"] == {"tokens": 200_000, "usd": "0.500000", "steps": None}


@pytest.mark.parametrize(
    "changed",
    [
        {"input": {"text": "x"}},
        {"input": {"text": "x" * TEXT_LIMIT}},
        {"input": {"text": "😡" * TEXT_LIMIT}},
        {"input": {"text": "\U0001fae8"}},
        {"priority": 5},
        {"deadline_seconds": MAX_DEADLINE_SECONDS},
        {"budget": None},
        {"budget": {}},
        {"budget": {"usd": "999999.999999"}},
        {"budget": {"steps": 1}},
        {"budget": {"steps": 100}},
        {"budget": {"steps": None}},
    ],
    ids=lambda changed: str(changed)[:40],
)
async def test_the_last_allowed_value_is_accepted(ann: AsyncClient, changed: Body) -> None:
    response = await ann.post("/v1/jobs", json={**REQUEST, **changed})

    assert response.status_code == 202, response.text


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"input": {"text": ""}}, "/input/text"),
        ({"input": {"text": " \t\n\u00a0\u200b\u2060\u0007"}}, "/input/text"),
        ({"input": {"text": "x" * (TEXT_LIMIT + 1)}}, "/input/text"),
        ({"input": {"text": None}}, "/input/text"),
        ({"input": {"text": 7}}, "/input/text"),
        ({"input": {"text": ["x"]}}, "/input/text"),
        ({"input": {}}, "/input/text"),
        ({"input": "text"}, "/input"),
        ({"input": {"text": "x", "tenant": "globex"}}, "/input"),
        ({"agent": "nobody"}, "/agent"),
        ({"agent": "../x"}, "/agent"),
        ({"agent": "x" * 65}, "/agent"),
        ({"priority": 0}, "/priority"),
        ({"priority": 6}, "/priority"),
        ({"priority": "3"}, "/priority"),
        ({"priority": True}, "/priority"),
        ({"priority": 1.5}, "/priority"),
        ({"deadline_seconds": 0}, "/deadline_seconds"),
        ({"deadline_seconds": MAX_DEADLINE_SECONDS + 1}, "/deadline_seconds"),
        ({"budget": {"tokens": 0}}, "/budget/tokens"),
        ({"budget": {"tokens": 1_000_000_001}}, "/budget/tokens"),
        ({"budget": {"usd": 0}}, "/budget/usd"),
        ({"budget": {"usd": "-1"}}, "/budget/usd"),
        ({"budget": {"usd": "NaN"}}, "/budget/usd"),
        ({"budget": {"usd": "Infinity"}}, "/budget/usd"),
        ({"budget": {"usd": "1e999999999"}}, "/budget/usd"),
        ({"budget": {"usd": "0.0000001"}}, "/budget/usd"),
        ({"budget": {"usd": "1000000"}}, "/budget/usd"),
        ({"budget": {"usd": True}}, "/budget/usd"),
        ({"budget": {"steps": 0}}, "/budget/steps"),
        ({"budget": {"steps": 101}}, "/budget/steps"),
        ({"budget": {"steps": "3"}}, "/budget/steps"),
        ({"budget": [1]}, "/budget"),
        *(
            ({name: "x"}, "")
            for name in ("id", "tenant", "user", "state", "attempt", "generation", "origin", "policy_version")
        ),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_a_field_that_cannot_be_taken_is_named(
    front: Front, ann: AsyncClient, changed: Body, pointer: str
) -> None:
    response = await ann.post("/v1/jobs", json={**REQUEST, **changed})

    assert pointers(response) == [pointer]
    assert await front.scene.count("jobs") == 0


async def test_every_field_that_is_wrong_is_named(ann: AsyncClient) -> None:
    response = await ann.post("/v1/jobs", json={"priority": 9, "budget": {"tokens": -1}})

    assert sorted(pointers(response)) == ["/budget/tokens", "/input", "/priority"]


async def test_an_unknown_agent_is_told_the_known_ones(ann: AsyncClient) -> None:
    response = await ann.post("/v1/jobs", json={**REQUEST, "agent": "nobody"})

    assert "support-triage" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("value", [[], "text", 7, None, True], ids=str)
async def test_a_body_that_is_no_object_is_refused_as_a_whole(ann: AsyncClient, value: object) -> None:
    response = await ann.request("POST", "/v1/jobs", json=value, headers={"Content-Type": "application/json"})

    if value is None:  # httpx sends nothing at all
        response = await ann.post("/v1/jobs", content=b"null", headers={"Content-Type": "application/json"})
    assert pointers(response) == [""]
