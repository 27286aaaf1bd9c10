"""traceparent (W3C Trace Context): a job joins its caller's trace, if the header is valid, and begins one else."""

import re

import pytest
from httpx import AsyncClient

from tests.api.front import REQUEST, Front

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


async def trace_of(client: AsyncClient, *given: str) -> str:
    headers = [(b"traceparent", value.encode("latin-1")) for value in given]
    response = await client.post("/v1/jobs", json=REQUEST, headers=headers)
    assert response.status_code == 202, response.text
    told: str = response.json()["trace_id"]
    return told


@pytest.mark.parametrize(
    "given",
    [
        f"00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-00",
        f"00-{TRACE}-{PARENT}-ff",
        f" 00-{TRACE}-{PARENT}-01\t",
        f"01-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like",
        f"fe-{TRACE}-{PARENT}-01-",
    ],
)
async def test_a_valid_header_is_the_trace_of_the_job(front: Front, ann: AsyncClient, given: str) -> None:
    told = await trace_of(ann, given)

    assert told == TRACE
    assert await front.scene.rows("SELECT trace_id FROM jobs") == [{"trace_id": TRACE}]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01-",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"cc-{TRACE}-{PARENT}-012",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE}0-{PARENT}-01",
        f"00-{TRACE}-{PARENT[:-1]}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-0x",
        f"0-{TRACE}-{PARENT}-01",
        f"0g-{TRACE}-{PARENT}-01",
        f"00-{TRACE[:-1]}\u00e4-{PARENT}-01",
        f"00_{TRACE}_{PARENT}_01",
        "x" * 10_000,
    ],
    ids=lambda value: ascii(value)[:40],
)
async def test_a_header_that_is_not_valid_begins_a_new_trace(ann: AsyncClient, given: str) -> None:
    told = await trace_of(ann, given)

    assert re.fullmatch("[0-9a-f]{32}", told)
    assert told not in {TRACE, "0" * 32}


async def test_two_headers_begin_a_new_trace(ann: AsyncClient) -> None:
    told = await trace_of(ann, f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01")

    assert told != TRACE


async def test_each_job_without_a_header_has_a_trace_of_its_own(ann: AsyncClient) -> None:
    first, second = [await trace_of(ann) for _ in range(2)]

    assert first != second
