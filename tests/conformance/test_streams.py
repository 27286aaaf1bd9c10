"""Event streams: to the letter of the HTML standard, without gaps, and the same whenever they are read."""

import pytest

from tests.conformance.deployment import UNKNOWN, Caller, problem
from tests.conformance.event_stream import Event, events


async def all_of(caller: Caller, job_id: str, last: str | None = None, **query: str) -> list[Event]:
    async with caller.stream(job_id, last, **query) as answer:
        assert answer.status_code == 200
        return [event async for event in events(answer)]


async def test_a_stream_is_one_and_may_pass_through_proxies(caller: Caller) -> None:
    """HTML standard, 9.2.5: the media type; RFC 9111, 5.2.2.5: nothing to be stored."""
    job_id = await caller.accepted()

    async with caller.stream(job_id) as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].split(";")[0] == "text/event-stream"
        assert "no-store" in answer.headers["Cache-Control"]
        assert "Content-Encoding" not in answer.headers


async def test_a_stream_begins_with_where_the_job_stands_and_ends_with_it(caller: Caller) -> None:
    """HTML standard, 9.2.6."""
    job_id = await caller.accepted()

    told = await all_of(caller, job_id)

    assert told[0].type == "snapshot"
    assert told[0].value["id"] == job_id
    assert all(event.type == event.value["type"] for event in told[1:])
    assert (await caller.job(job_id))["state"] in {"succeeded", "dead"}


async def test_events_have_no_gap_and_no_repeat(caller: Caller) -> None:
    """HTML standard, 9.2.6: the last event ID."""
    job_id = await caller.accepted()

    told = await all_of(caller, job_id)
    ids = [int(event.id) for event in told]

    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert [event.value["seq"] for event in told[1:]] == ids[1:]


async def test_a_stream_goes_on_strictly_after_the_last_event(caller: Caller) -> None:
    """HTML standard, 9.2.4: Last-Event-ID."""
    job_id = await caller.accepted()
    await caller.until(job_id)
    whole = await all_of(caller, job_id, "0")

    for number, event in enumerate(whole[:-1]):
        by_header = await all_of(caller, job_id, event.id)
        assert by_header == whole[number + 1 :]
    assert await all_of(caller, job_id, last_event_id=whole[0].id) == whole[1:]


async def test_who_knows_the_end_is_told_not_to_come_back(caller: Caller) -> None:
    """HTML standard, 9.2.3: 204 stops a client from connecting again."""
    job_id = await caller.accepted()
    await caller.until(job_id)
    whole = await all_of(caller, job_id, "0")

    async with caller.stream(job_id, whole[-1].id) as answer:
        assert answer.status_code == 204
        assert await answer.aread() == b""


@pytest.mark.parametrize("last", ["x", "-1", "1.0", "+1", "999999999", "9" * 40])
async def test_what_is_no_event_of_the_job_is_refused(caller: Caller, last: str) -> None:
    """RFC 9110, 15.5.1."""
    job_id = await caller.accepted()

    async with caller.stream(job_id, last) as answer:
        await answer.aread()
        problem(answer, 400)


async def test_an_unknown_jobs_stream_is_not_found(caller: Caller) -> None:
    """RFC 9110, 15.5.5."""
    async with caller.stream(UNKNOWN) as answer:
        await answer.aread()
        problem(answer, 404)
