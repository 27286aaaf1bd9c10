"""The outermost layer: every request has an id, one log event without content, and an answer whatever happens."""

import asyncio
import json
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from httpx import AsyncClient
from structlog.testing import capture_logs

from agentjobs.api.event_stream import OpenStreams
from tests.api.front import REQUEST, UNKNOWN, Front, check_problem, pointers
from tests.world import eventually

CANARY = "hunter2canary"


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/jobs/", "/v2/jobs", "/v1/jobs/x/y", "/docs", "//v1/jobs"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_path_is_not_found(ann: AsyncClient, path: str, method: str) -> None:
    response = await ann.request(method, path)

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/jobs", "GET, HEAD, POST"),
        ("PUT", f"/v1/jobs/{UNKNOWN}", "DELETE, GET, HEAD"),
        ("GET", f"/v1/jobs/{UNKNOWN}/cancel", "POST"),
        ("POST", "/v1/dead-letters/report", "GET, HEAD"),
        ("PATCH", "/v1/keys", "GET, HEAD, POST"),
        ("PUT", f"/v1/keys/{UNKNOWN}", "DELETE, GET, HEAD"),
        ("PUT", "/v1/grants", "DELETE, GET, HEAD, POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("BREW", "/v1/jobs", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/jobs", "GET, HEAD, POST"),
        ("HEAD", f"/v1/jobs/{UNKNOWN}/cancel", "POST"),
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


@pytest.mark.parametrize("host", ["", "x", "X.test:8080", "x:", "127.0.0.1:1", "[::1]:80", "a%20b", "x" * 5_000])
async def test_a_strange_host_changes_nothing(ann: AsyncClient, host: str) -> None:
    answers = [await ann.get(path, headers=[(b"Host", host.encode())]) for path in ("/v1/jobs", "/v1/jobs/x")]

    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize("host", ["[", "a b", "\u00e4", "a/b", "u@x", "x:y", "x:1:2", "a%2", "[::1]x", "x\\y"])
async def test_what_is_no_host_is_refused(ann: AsyncClient, host: str) -> None:
    assert (await ann.get("/v1/jobs", headers=[(b"Host", host.encode())])).status_code == 400


async def test_two_hosts_are_refused(ann: AsyncClient) -> None:
    assert (await ann.get("/v1/jobs", headers=[("Host", "a"), ("Host", "a")])).status_code == 400


@pytest.mark.parametrize(
    "path", ["/v1/jobs", f"/v1/jobs/{UNKNOWN}", "/healthz", "/v1/nothing", "/v1/jobs?limit=0"]
)
async def test_head_is_get_without_a_body(ann: AsyncClient, path: str) -> None:
    got, head = await ann.get(path), await ann.head(path)

    assert (head.status_code, head.content) == (got.status_code, b"")
    for name in ("content-type", "content-length", "cache-control"):
        assert head.headers[name] == got.headers[name]


async def test_head_of_a_stream_ends_at_once(front: Front, ann: AsyncClient) -> None:
    job_id = await front.scene.running(user="ann")

    head = await asyncio.wait_for(ann.head(f"/v1/jobs/{job_id}/events"), 5)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "text/event-stream"
    await eventually(lambda: _no_stream(front), "the stream's end")


async def _no_stream(front: Front) -> bool:
    streams: OpenStreams = front.app.state.streams
    return streams.count == 0


@pytest.mark.parametrize("border", ["%2f", "%2F", "%5c", "%00", "%0a", "%1F", "%7f"])
async def test_a_hidden_border_reaches_no_route(front: Front, ann: AsyncClient, border: str) -> None:
    job_id = await front.scene.running(user="ann")

    answer = await ann.post(f"/v1/jobs/{job_id}{border}cancel")

    assert answer.status_code == 404
    assert (await front.scene.job(job_id)).cancel_requested_at is None


async def test_an_escape_that_hides_nothing_is_read(ann: AsyncClient) -> None:
    assert (await ann.get("/v1/%6Aobs")).status_code == 200


@pytest.mark.parametrize("target", ["/v1/jobs/" + "x" * 9_000, "/v1/jobs?agent=" + "x" * 9_000])
async def test_a_target_that_is_too_long_is_refused_before_the_caller_is_looked_up(
    front: Front, target: str
) -> None:
    assert (await front.of(None).get(target)).status_code == 414


@pytest.mark.parametrize(
    "number", ["1_0", " 5", "5 ", "+5", "5.0", "05", "1e1", "0x5", "\uff15", "\u0665", "", "9" * 19]
)
@pytest.mark.parametrize("place", ["/v1/jobs?limit=", "/v1/dead-letters/report?window_hours=", "/v1/audit?limit="])
async def test_a_number_is_written_in_digits(front: Front, place: str, number: str) -> None:
    answer = await front.of("gus").get(place + quote(number))

    assert pointers(answer) == ["query:" + place.partition("?")[2].rstrip("=")]


async def test_every_number_of_the_document_is_read_as_strictly(front: Front) -> None:
    for path, operations in front.app.openapi()["paths"].items():
        for name in _integers(operations.get("get", {})):
            answer = await front.of("gus").get(path.replace("{id}", UNKNOWN), params={name: "1_0"})

            assert pointers(answer) == [f"query:{name}"]


def _integers(operation: dict[str, Any]) -> list[str]:
    parameters = [one for one in operation.get("parameters", []) if one["in"] == "query"]
    return [one["name"] for one in parameters if "integer" in json.dumps(one["schema"])]


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
