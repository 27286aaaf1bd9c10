"""Quotas: what is too much is refused for a while, and told how long. Needs an admin key."""

import asyncio
import re

import pytest

from tests.conformance.deployment import REQUEST, Caller, a_key, problem

LARGEST = 20
"""A limit above is not tried out: it would take too many jobs of the deployment."""

# Lists of structured fields (RFC 8941, 3.1): strings with parameters.
ITEM = r'"[a-z]+"(;[a-z]+=\d+)+'
LIST = rf"{ITEM}(, {ITEM})*"


async def in_flight_limit(caller: Caller) -> int:
    answer = await caller.http.get("/v1/quota")
    limit = answer.json()["in_flight"]["limit"]
    if limit is None or limit > LARGEST:
        pytest.skip("no limit, or one that is too large to be tried out")
    return int(limit)


async def test_more_than_the_limit_at_once_is_refused_for_a_while(newcomer: Caller) -> None:
    """RFC 6585, 4; RFC 9110, 10.2.3; draft-ietf-httpapi-ratelimit-headers."""
    limit = await in_flight_limit(newcomer)

    answers = await asyncio.gather(*(newcomer.post("/v1/jobs", REQUEST) for _ in range(4 * limit)))

    assert {answer.status_code for answer in answers} == {202, 429}
    for refused in (answer for answer in answers if answer.status_code == 429):
        problem(refused, 429)
        assert int(refused.headers["Retry-After"]) > 0
        assert re.fullmatch(LIST, refused.headers["RateLimit-Policy"])
        assert re.fullmatch(LIST, refused.headers["RateLimit"])
        assert f";t={refused.headers['Retry-After']}" in refused.headers["RateLimit"]


async def test_one_key_is_one_of_the_quota(newcomer: Caller) -> None:
    """draft-ietf-httpapi-idempotency-key-header-07, 2.6: a repeated request has no second effect."""
    limit = await in_flight_limit(newcomer)
    key = a_key()

    answers = [await newcomer.submit(Idempotency_Key=key) for _ in range(limit + 2)]

    assert {answer.status_code for answer in answers} == {202}
