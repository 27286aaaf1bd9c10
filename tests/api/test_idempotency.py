"""Idempotency-Key: one key and one body make one job, however often they are sent."""

import asyncio
import json
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api import strict_route
from agentjobs.api.app import create_app
from agentjobs.domain import keys
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.front import JSON, REQUEST, Front, new_app
from tests.conftest import fresh_database
from tests.ledger.scene import MODEL_CALL, submission

KEPT_HEADERS = ("location", "retry-after", "idempotency-key-expires")


async def test_the_same_key_and_body_return_the_first_job(front: Front, ann: AsyncClient) -> None:
    first = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})

    second = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json() == first.json()
    assert second.headers["location"] == first.headers["location"]
    assert await front.scene.count("jobs") == await front.scene.count("outbox") == 1


async def test_quoted_and_bare_are_the_same_key(ann: AsyncClient) -> None:
    bare = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k-1"})

    quoted = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": '"k-1"'})

    assert quoted.json()["id"] == bare.json()["id"]


@pytest.mark.parametrize(
    "body",
    [
        b' {\n "priority" : 3, "input": {"text": "A \\u00fc"} } ',
        '{"input": {"text": "A ü"}}'.encode(),
        '{"budget": null, "deadline_seconds": 86400, "input": {"text": "A ü"}}'.encode(),
    ],
    ids=["order and space", "defaults left out", "defaults given"],
)
async def test_a_body_that_means_the_same_is_the_same(ann: AsyncClient, body: bytes) -> None:
    headers = JSON | {"Idempotency-Key": "k1"}
    plain = json.dumps({"input": {"text": "A ü"}, "priority": 3}).encode()
    first = await ann.post("/v1/jobs", content=plain, headers=headers)

    second = await ann.post("/v1/jobs", content=body, headers=headers)

    assert second.json()["id"] == first.json()["id"]


@pytest.mark.parametrize(
    ("body", "fingerprint"),
    [
        (REQUEST, "0e9fb4dc4a89c5854bd309c5ebceafa24a18e9617e44595b4f8eb9eec1f7e702"),
        ({**REQUEST, "budget": {}}, "9570d217c072103bf2bc9024862e2a6840a7db20f498a9c9b070a941a60cd1e8"),
        (
            {**REQUEST, "budget": {"steps": None}},
            "9570d217c072103bf2bc9024862e2a6840a7db20f498a9c9b070a941a60cd1e8",
        ),
        (
            {
                "input": {"text": "Grüße"},
                "deadline_seconds": 60,
                "budget": {"tokens": 7, "usd": "0.25"},
                "priority": 1,
            },
            "7fb43cbcf8aebbebd666bca22c14ff619552316aed90e493d570bdf33802d343",
        ),
    ],
    ids=["no budget", "empty budget", "no steps", "all that there was"],
)
async def test_a_key_of_the_first_release_still_finds_its_job(
    front: Front, ann: AsyncClient, body: dict[str, Any], fingerprint: str
) -> None:
    # Written down before a budget had steps.
    first = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})

    second = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})

    assert second.json()["id"] == first.json()["id"]
    assert await front.scene.rows("SELECT fingerprint FROM idempotency_keys") == [{"fingerprint": fingerprint}]


async def test_other_steps_are_another_request(ann: AsyncClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    await ann.post("/v1/jobs", json={**REQUEST, "budget": {"steps": 2}}, headers=headers)

    same = await ann.post("/v1/jobs", json={**REQUEST, "budget": {"steps": 2}}, headers=headers)
    others = [
        await ann.post("/v1/jobs", json={**REQUEST, "budget": b}, headers=headers) for b in ({"steps": 3}, {})
    ]

    assert (same.status_code, [other.status_code for other in others]) == (202, [422, 422])


async def test_another_trace_is_the_same_request(ann: AsyncClient) -> None:
    first, second = [
        await ann.post(
            "/v1/jobs",
            json=REQUEST,
            headers={"Idempotency-Key": "k1", "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"},
        )
        for trace_id in ("1" * 32, "2" * 32)
    ]

    assert second.json() == first.json()
    assert second.json()["trace_id"] == "1" * 32


async def test_the_same_key_with_another_body_is_refused(front: Front, ann: AsyncClient) -> None:
    await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})

    other = await ann.post("/v1/jobs", json={**REQUEST, "priority": 1}, headers={"Idempotency-Key": "k1"})

    assert other.status_code == 422
    assert other.json()["type"] == "urn:agentjobs:problem:idempotency_key_reused"
    assert await front.scene.count("jobs") == 1


async def test_without_a_key_each_request_is_a_new_job(front: Front, ann: AsyncClient) -> None:
    one = await ann.post("/v1/jobs", json=REQUEST)
    other = await ann.post("/v1/jobs", json=REQUEST)

    assert one.json()["id"] != other.json()["id"]
    assert await front.scene.count("jobs") == 2


async def test_a_key_is_its_users_and_its_tenants_own(front: Front) -> None:
    headers = {"Idempotency-Key": "k1"}

    answers = [
        await front.of(name).post("/v1/jobs", json=REQUEST, headers=headers)
        for name in ("ann", "ben", "ann_of_globex")
    ]

    assert [answer.status_code for answer in answers] == [202] * 3
    assert len({answer.json()["id"] for answer in answers}) == 3


@pytest.mark.parametrize("round_", range(3))
async def test_fifty_at_once_with_one_key_are_one_job(
    front: Front, ann: AsyncClient, monkeypatch: pytest.MonkeyPatch, round_: int
) -> None:
    monkeypatch.setattr(strict_route, "ANSWER_SECONDS", 60.0)  # a busy machine would refuse some for the load
    headers = {"Idempotency-Key": "k1"}

    answers = await asyncio.gather(*(ann.post("/v1/jobs", json=REQUEST, headers=headers) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert await front.scene.count("jobs") == await front.scene.count("outbox") == 1


async def test_the_answer_stays_the_first_one_whatever_the_job_comes_to(front: Front, ann: AsyncClient) -> None:
    body = {**REQUEST, "budget": {"tokens": 1_000}}
    first = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})
    job_id = first.json()["id"]
    await front.scene.done(job_id, keys.PLAN, {"text": "a plan"}, **MODEL_CALL)
    await front.scene.bury(job_id)
    raised = {"note": "worth more", "budget": {"tokens": 2_000}}
    assert (await front.of("rita").post(f"/v1/dead-letters/{job_id}/redrive", json=raised)).status_code == 202

    second = await ann.post("/v1/jobs", json=body, headers={"Idempotency-Key": "k1"})

    shown = (await ann.get(f"/v1/jobs/{job_id}")).json()
    assert (second.status_code, second.content) == (202, first.content)
    assert {name: second.headers[name] for name in KEPT_HEADERS} == {
        name: first.headers[name] for name in KEPT_HEADERS
    }
    assert (shown["state"], shown["budget"]["tokens"]) == ("dead", 2_000)


async def test_the_answer_says_how_long_its_key_holds_at_least(ann: AsyncClient) -> None:
    keyed = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})
    without = await ann.post("/v1/jobs", json=REQUEST)

    expires = parsedate_to_datetime(keyed.headers["idempotency-key-expires"])
    accepted = datetime.fromisoformat(keyed.json()["created_at"])
    assert timedelta(hours=24) - timedelta(seconds=1) < expires - accepted <= timedelta(hours=24)
    assert "idempotency-key-expires" not in without.headers


async def test_a_request_that_is_refused_uses_up_no_key(front: Front, ann: AsyncClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    refused = [
        await ann.post("/v1/jobs", json={"input": {"text": ""}}, headers=headers),
        await ann.post("/v1/jobs", json={**REQUEST, "agent": "nobody"}, headers=headers),
        await ann.post("/v1/jobs", content=b"{", headers=JSON | headers),
        await ann.post("/v1/jobs", content=b"{}", headers=headers),
    ]

    accepted = await ann.post("/v1/jobs", json=REQUEST, headers=headers)

    assert [answer.status_code for answer in refused] == [422, 422, 400, 415]
    assert accepted.status_code == 202


async def test_a_twin_of_a_request_that_does_not_end_is_told_to_come_again(postgres: EmbeddedPostgres) -> None:
    async with fresh_database(postgres) as url:
        ledger = await Ledger.open(url, size=3, application_name="tests", lock_seconds=0.05)
        front = Front(new_app(ledger), ledger)
        await front.populate()
        ann = front.of("ann")
        async with ledger.database.transaction() as held:
            await ledger.jobs.accept(submission("acme", user="ann", key="k1"), held)

            twin = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k1"})
            other = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k2"})
        await front.close()
        await ledger.close()

    assert (twin.status_code, other.status_code) == (409, 202)
    assert twin.json()["type"] == "urn:agentjobs:problem:idempotency_key_in_flight"
    assert int(twin.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "key",
    ["", '""', '"', '"a', 'a"b', "a b", "a,b", '"a\\b"', "ä", "a\x7f", "a\tb", "x" * 256, '"' + "x" * 256 + '"'],
    ids=lambda key: ascii(key)[:20],
)
async def test_a_malformed_key_is_refused(front: Front, ann: AsyncClient, key: str) -> None:
    response = await ann.post("/v1/jobs", json=REQUEST, headers=[(b"Idempotency-Key", key.encode("latin-1"))])

    assert response.status_code == 400
    assert response.json()["type"] == "urn:agentjobs:problem:malformed_idempotency_key"
    assert await front.scene.count("jobs") == 0


@pytest.mark.parametrize("key", ["x" * 255, '"' + "x" * 255 + '"', "!#$%&'()*+-./:<=>?@[]^_`{|}~", '"\\"\\\\"'])
async def test_every_well_formed_key_is_taken(ann: AsyncClient, key: str) -> None:
    response = await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": key})

    assert response.status_code == 202, response.text


@pytest.mark.parametrize("second", ["k1", "k2"])
async def test_two_keys_are_refused(ann: AsyncClient, second: str) -> None:
    headers = [("Idempotency-Key", "k1"), ("Idempotency-Key", second)]

    response = await ann.post("/v1/jobs", json=REQUEST, headers=headers)

    assert response.status_code == 400


async def test_an_api_that_fails_after_the_acceptance_has_accepted_once(front: Front) -> None:
    failpoints = Failpoints.parse("submit.after_accept=raise@1")
    app = create_app(front.ledger, built_in_agents(), failpoints=failpoints)
    headers = {"Authorization": f"Bearer {front.keys['ann']}", "Idempotency-Key": "k-1"}
    transport = ASGITransport(app=app)
    async with AsyncClient(transport=transport, base_url="http://api", headers=headers) as ann:
        first = await ann.post("/v1/jobs", json={"input": {"text": "once"}})
        second = await ann.post("/v1/jobs", json={"input": {"text": "once"}})

    assert (first.status_code, second.status_code) == (503, 202)
    assert "Retry-After" in first.headers
    assert await front.scene.rows("SELECT id FROM jobs") == [{"id": second.json()["id"]}]
