"""Refusals: RFC 9457 problems with the status that RFC 9110 has for them, and nothing of the request in them."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.conformance.deployment import UNKNOWN, Caller, problem

CANARY = "canary7f3a"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/jobs/", "/v1/jobs/x/y/z", "/v9/jobs", "//v1/jobs"])
async def test_an_unknown_path_is_not_found(caller: Caller, path: str) -> None:
    """RFC 9110, 15.5.5."""
    problem(await caller.http.get(path), 404)


@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/jobs"), ("POST", f"/v1/jobs/{UNKNOWN}")])
async def test_another_method_is_told_those_that_are_taken(caller: Caller, method: str, path: str) -> None:
    """RFC 9110, 15.5.6: the answer must have Allow."""
    answer = await caller.http.request(method, path)

    problem(answer, 405)
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("given", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
async def test_another_media_type_is_not_taken(caller: Caller, given: str) -> None:
    """RFC 9110, 15.5.16."""
    answer = await caller.http.post("/v1/jobs", content=b'{"input":{"text":"x"}}', headers={"Content-Type": given})

    problem(answer, 415)


async def test_a_coded_body_is_not_taken(caller: Caller) -> None:
    """RFC 9110, 15.5.16: Content-Encoding too."""
    answer = await caller.http.post("/v1/jobs", content=b"\x1f\x8b", headers=JSON | {"Content-Encoding": "gzip"})

    problem(answer, 415)


async def test_a_body_that_is_too_large_is_refused(caller: Caller) -> None:
    """RFC 9110, 15.5.14, for an announced length and for one that is not."""

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    announced = await caller.http.post("/v1/jobs", content=b" " * 4_194_304, headers=JSON)
    problem(announced, 413)
    try:
        counted = await caller.http.post("/v1/jobs", content=parts(), headers=JSON)
    except httpx.WriteError:
        return  # the connection was closed, as the section allows
    problem(counted, 413)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/v1/{CANARY}", None),
        ("GET", f"/v1/jobs/{CANARY}", None),
        ("GET", f"/v1/jobs?state={CANARY}", None),
        ("GET", f"/v1/jobs?{CANARY}=1", None),
        ("POST", "/v1/jobs", {CANARY: CANARY}),
        ("POST", "/v1/jobs", {"input": {"text": {CANARY: CANARY}}}),
        ("POST", "/v1/jobs", {"agent": CANARY, "input": {"text": CANARY}}),
    ],
)
async def test_no_problem_repeats_the_request(caller: Caller, method: str, path: str, body: object) -> None:
    """RFC 9457, 5: a problem must not give away what its reader may not see."""
    answer = await caller.http.request(method, path, json=body)

    assert 400 <= answer.status_code < 500
    problem(answer, answer.status_code)
    assert CANARY not in answer.text + str(answer.headers)


async def test_a_field_that_is_refused_is_pointed_at(caller: Caller) -> None:
    """RFC 9457, 3.2, with JSON pointers of RFC 6901."""
    told = problem(await caller.post("/v1/jobs", {"input": {"text": 7}, "priority": 99}), 422)

    assert {error["pointer"] for error in told["errors"]} == {"/input/text", "/priority"}
