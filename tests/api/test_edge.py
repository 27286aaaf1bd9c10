"""The outermost layer: every request has an id, one log event without content, and an answer whatever happens."""

import uuid
from typing import Any

import pytest
from httpx import AsyncClient
from structlog.testing import capture_logs

from tests.api.front import REQUEST, UNKNOWN, Front, check_problem

CANARY = "hunter2canary"


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/jobs/", "/v2/jobs", "/v1/jobs/x/y", "/docs", "//v1/jobs"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_path_is_not_found(ann: AsyncClient, path: str, method: str) -> None:
    response = await ann.request(method, path)

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/jobs", "GET, POST"),
        ("PUT", f"/v1/jobs/{UNKNOWN}", "GET"),
        ("GET", f"/v1/jobs/{UNKNOWN}/cancel", "POST"),
        ("POST", "/v1/dead-letters/report", "GET"),
        ("PATCH", "/v1/keys", "GET, POST"),
        ("PUT", f"/v1/keys/{UNKNOWN}", "DELETE, GET"),
        ("PUT", "/v1/grants", "DELETE, GET, POST"),
        ("POST", "/healthz", "GET"),
        ("BREW", "/v1/jobs", "GET, POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    ann: AsyncClient, method: str, path: str, allowed: str
) -> None:
    response = await ann.request(method, path)

    assert response.status_code == 405
    assert response.headers["allow"] == allowed


async def test_every_answer_has_its_own_id(ann: AsyncClient) -> None:
    answers = [await ann.get("/v1/jobs", headers={"X-Request-Id": CANARY}) for _ in range(2)]
    refused = await ann.get("/v1/jobs?limit=0")

    ids = {uuid.UUID(answer.headers["x-request-id"]) for answer in answers}
    assert len(ids) == 2
    assert check_problem(refused)["instance"] == f"urn:uuid:{refused.headers['x-request-id']}"


@pytest.mark.parametrize("host", ["[", "a b", "", "\u00e4", "x" * 5_000])
async def test_a_strange_host_changes_nothing(ann: AsyncClient, host: str) -> None:
    answers = [await ann.get(path, headers=[(b"Host", host.encode())]) for path in ("/v1/jobs", "/v1/jobs/x")]

    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize(
    "headers", [[(f"X-{n}", "x") for n in range(200)], [("X-Long", "x" * 40_000)]], ids=["many", "long"]
)
async def test_too_many_headers_are_refused(ann: AsyncClient, headers: list[tuple[str, str]]) -> None:
    assert (await ann.get("/v1/jobs", headers=headers)).status_code == 431


async def test_each_request_is_one_event(ann: AsyncClient) -> None:
    with capture_logs() as events:
        response = await ann.get(f"/v1/jobs/{UNKNOWN}")

    event = events[0]
    assert len(events) == 1
    assert event.pop("duration_ms") >= 0
    assert event == {
        "event": "request",
        "log_level": "info",
        "request_id": response.headers["x-request-id"],
        "method": "GET",
        "route": "/v1/jobs/{id}",
        "status": 404,
    }


async def test_no_event_holds_what_was_sent(front: Front, ann: AsyncClient) -> None:
    requests: list[dict[str, Any]] = [
        {"method": "GET", "url": f"/{CANARY}"},
        {"method": "GET", "url": f"/v1/jobs/{CANARY}?agent={CANARY}"},
        {"method": "POST", "url": "/v1/jobs", "json": {"input": {"text": CANARY}}},
        {"method": "POST", "url": "/v1/jobs", "json": {CANARY: CANARY}},
        {"method": "POST", "url": "/v1/jobs", "json": REQUEST, "headers": {"Idempotency-Key": CANARY}},
        {"method": "GET", "url": "/v1/jobs", "headers": {"Authorization": f"Bearer ajk_{CANARY}"}},
        {"method": CANARY.upper(), "url": "/v1/jobs"},
    ]

    with capture_logs() as events:
        for request in requests:
            await ann.request(**request)

    assert len(events) == len(requests)
    assert CANARY not in str(events).lower()
    assert front.keys["ann"] not in str(events)


async def test_an_unforeseen_error_is_told_by_its_place(
    front: Front, ann: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(type(front.ledger.jobs), "page", broken)
    with capture_logs() as events:
        response = await ann.get("/v1/jobs")

    assert response.status_code == 500
    assert CANARY not in response.text + str(events)
    assert [event["event"] for event in events] == ["unforeseen_error", "request"]
    assert (events[0]["error_type"], events[1]["status"]) == ("RuntimeError", 500)
    assert "test_edge.py:" in events[0]["place"]


async def test_health_needs_no_key(front: Front) -> None:
    stranger = front.of(None)

    answers = [await stranger.get(path) for path in ("/healthz", "/readyz")]

    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"status": "ok"})] * 2
