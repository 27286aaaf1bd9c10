"""Submission: 202 when it is durable, and where the job stands from then on."""

import asyncio
import re

import pytest

from tests.conformance.deployment import REQUEST, Caller, a_key, problem


async def test_an_accepted_job_is_told_where_it_is(caller: Caller) -> None:
    """RFC 9110, 15.3.3: a 202 describes the request's status and points to a monitor of it."""
    answer = await caller.submit()

    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"].endswith(f"/v1/jobs/{job['id']}")
    assert int(answer.headers["Retry-After"]) >= 0
    assert job["state"] == "pending"
    assert (await caller.http.get(answer.headers["Location"])).json()["id"] == job["id"]


async def test_what_fails_later_stands_in_the_job(caller: Caller) -> None:
    """AIP-151: what prevents the start is an HTTP error; afterwards the resource is 200 whatever became of it."""
    job = await caller.until(await caller.accepted())

    assert job["state"] in {"succeeded", "dead"}
    assert (job["failure"] is None) == (job["state"] == "succeeded")
    assert job["usage"]["tokens_in"] >= 0
    assert (job["finalized_at"] is None) == (job["state"] == "dead")


async def test_attempts_are_on_record(caller: Caller) -> None:
    job_id = await caller.accepted()
    await caller.until(job_id)

    attempts = (await caller.http.get(f"/v1/jobs/{job_id}/attempts")).json()["items"]

    assert attempts


async def test_without_a_key_each_request_is_a_new_job(caller: Caller) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.1: POST alone is not idempotent."""
    assert await caller.accepted() != await caller.accepted()


@pytest.mark.parametrize("spelling", ["{key}", '"{key}"'], ids=["bare", "quoted"])
async def test_the_same_key_and_body_are_answered_in_the_same_way(caller: Caller, spelling: str) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.6: the result of the first request, again."""
    key = a_key()
    first = await caller.submit(Idempotency_Key=f'"{key}"')
    await caller.until(first.json()["id"])

    second = await caller.submit(Idempotency_Key=spelling.format(key=key))

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json() == first.json()
    assert second.headers["Location"] == first.headers["Location"]


async def test_the_same_key_for_another_body_is_refused(caller: Caller) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.7: 422."""
    key = a_key()
    await caller.submit(Idempotency_Key=key)

    answer = await caller.submit({**REQUEST, "priority": 1}, Idempotency_Key=key)

    problem(answer, 422)


@pytest.mark.parametrize("key", ['""', '"a', "a b", "a,b", '"a\\b"', "x" * 256, '"' + "x" * 256 + '"'], ids=ascii)
async def test_a_malformed_key_is_refused(caller: Caller, key: str) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.7: 400; the grammar is RFC 8941, 3.3.3."""
    problem(await caller.post("/v1/jobs", REQUEST, Idempotency_Key=key), 400)


async def test_what_is_refused_uses_up_no_key(caller: Caller) -> None:
    key = a_key()
    problem(await caller.post("/v1/jobs", {"input": {}}, Idempotency_Key=key), 422)

    assert (await caller.submit(Idempotency_Key=key)).status_code == 202


async def test_a_key_is_its_tenants_own(caller: Caller, other: Caller) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 5: keys of one client are nothing to another."""
    key = a_key()

    assert await caller.accepted(Idempotency_Key=key) != await other.accepted(Idempotency_Key=key)


async def test_fifty_at_once_with_one_key_are_one_job(caller: Caller) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.6: a twin of one that is under way may hear 409."""
    key = a_key()

    answers = await asyncio.gather(*(caller.submit(Idempotency_Key=key) for _ in range(50)))

    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 202}) == 1
    for answer in answers:
        if answer.status_code == 409:
            problem(answer, 409)


async def test_a_trace_is_joined(caller: Caller) -> None:
    """W3C Trace Context, 3.2."""
    trace = a_key().removeprefix("conformance-").replace("-", "")

    answer = await caller.submit(traceparent=f"00-{trace}-00f067aa0ba902b7-01")

    assert answer.json()["trace_id"] == trace
    assert re.fullmatch("[0-9a-f]{32}", (await caller.submit(traceparent="nonsense")).json()["trace_id"])
