"""Strict reading: what JSON readers would disagree on is refused (RFC 8259; RFC 7493, I-JSON)."""

import pytest

from tests.conformance.deployment import REQUEST, Caller, problem

JSON = {"Content-Type": "application/json"}
START = b'{"input":{"text":"x"},"priority":'


async def status_of(caller: Caller, body: bytes) -> int:
    answer = await caller.http.post("/v1/jobs", content=body, headers=JSON)
    problem(answer, answer.status_code)
    return answer.status_code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'input':1}",
        b'{"input":{"text":"\xff"}}',
        b'\xef\xbb\xbf{"input":{"text":"x"}}',
        b"[" * 50 + b'"',
    ],
    ids=ascii,
)
async def test_what_is_no_json_is_malformed(caller: Caller, body: bytes) -> None:
    """RFC 9110, 15.5.1; RFC 8259, 2 and 8.1."""
    assert await status_of(caller, body) == 400


@pytest.mark.parametrize(
    "body",
    [
        START + b"NaN}",
        START + b"-Infinity}",
        START + b"1e999}",
        START + b"9007199254740993}",
        START + b"1" * 5_000 + b"}",
        b'{"input":{"text":"a"},"input":{"text":"b"}}',
        b'{"input":{"text":"a","te\\u0078t":"b"}}',
        b'{"input":{"text":"a\\u0000b"}}',
        b'{"input":{"text":"\\ud800"}}',
        START + b"[" * 500 + b"]" * 500 + b"}",
        START + b'{"a":' * 500 + b"1" + b"}" * 501,
    ],
    ids=lambda body: ascii(body)[:40],
)
async def test_what_readers_disagree_on_is_refused(caller: Caller, body: bytes) -> None:
    """RFC 9110, 15.5.21; RFC 7493, 2.1 to 2.3."""
    assert await status_of(caller, body) == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**REQUEST, "tenant": "x"},
        {**REQUEST, "state": "succeeded"},
        {**REQUEST, "priority": "3"},
        {**REQUEST, "priority": True},
        {**REQUEST, "deadline_seconds": 0},
        {**REQUEST, "agent": "../x"},
        {"input": {"text": "  "}},
        {"input": {"text": "x" * 100_000}},
        [],
        7,
        "text",
    ],
    ids=lambda body: str(body)[-30:],
)
async def test_a_member_that_cannot_be_taken_is_refused(caller: Caller, body: object) -> None:
    """RFC 9110, 15.5.21."""
    problem(await caller.post("/v1/jobs", body), 422)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=1_0", "limit=+5", "limit=5&limit=6", "state=x", "cursor=x", "color=red"],
)
async def test_a_parameter_that_cannot_be_taken_is_refused(caller: Caller, query: str) -> None:
    """RFC 9110, 15.5.21: a filter that was passed over would answer for everything."""
    problem(await caller.http.get(f"/v1/jobs?{query}"), 422)


async def test_a_pair_of_surrogates_is_one_character(caller: Caller) -> None:
    """RFC 8259, 7."""
    answer = await caller.http.post("/v1/jobs", content=b'{"input":{"text":"\\ud83d\\ude21"}}', headers=JSON)

    assert answer.status_code in {202, 429}
