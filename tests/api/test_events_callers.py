"""Whose streams go on: the key is looked at again and again, and each tenant has its share."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from agentjobs.api import authentication, event_stream
from agentjobs.api.event_feed import EventFeed, Next
from agentjobs.api.event_stream import STREAMS_LIMIT, OpenStreams, Telling
from agentjobs.api.open_files import KEPT_FREE, streams_that_fit
from agentjobs.domain.states import JobState
from agentjobs.ledger.events import Place
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.settings import StartError
from tests.api.event_source import EventSource, Served, serving
from tests.api.front import Front, check_problem
from tests.api.test_process import served as process_served
from tests.ledger.scene import Scene
from tests.world import eventually

CHANGES = {
    "revoked": "UPDATE api_keys SET revoked_at = now() WHERE id = $1",
    "expired": "UPDATE api_keys SET expires_at = created_at + interval '1 microsecond' WHERE id = $1",
    "another role": "UPDATE api_keys SET roles = '{submit,review}' WHERE id = $1",
    "another user": """UPDATE api_keys SET "user" = 'ben' WHERE id = $1""",
}


@pytest.fixture
async def served(front: Front, dsn: str) -> AsyncIterator[Served]:
    async with serving(front.ledger, dsn, streams=OpenStreams(per_tenant=3, in_all=4)) as opened:
        yield opened


async def opened_by(front: Front, served: Served, name: str, job_id: str, stack: AsyncExitStack) -> EventSource:
    return await stack.enter_async_context(served.stream(front.keys[name], job_id))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_is_changed_about_a_key_ends_its_streams_and_no_others(
    front: Front, served: Served, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(event_stream, "COMMENT_SECONDS", 0.05)
    monkeypatch.setattr(authentication, "CACHE_SECONDS", 0.0)
    plain, record = await front.ledger.identity.create_key("acme", "ann", frozenset({Role.SUBMIT}))
    job_id = await front.scene.running()

    async with served.stream(plain, job_id) as changed, served.stream(front.keys["ann"], job_id) as other:
        await changed.next()
        await other.next()
        await front.scene.execute(change, record.id)
        rest = await changed.rest()
        await other.until_comment()
        await front.scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)
        others = await other.rest()

    assert rest == []
    assert [message.event for message in others] == ["succeeded"]


def test_a_key_that_no_longer_holds_has_no_stream_a_minute_later() -> None:
    between_looks = event_stream.CHECK_SECONDS + max(event_stream.COMMENT_SECONDS, event_stream.WRITE_SECONDS)

    assert authentication.CACHE_SECONDS + between_looks < 60


class OnePage(EventFeed):
    """Has a page of sixty-four events for everybody."""

    def __init__(self) -> None:
        """Without a ledger."""

    async def next(self, place: Place) -> Next:
        """The same at each place."""
        wire = tuple(b"%d" % number for number in range(64))
        return Next(wire, first=place.after + 1, last=place.after + 64, is_end=False)


async def test_within_a_page_a_key_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.0)
    answers = iter([True, True, False])

    async def may_go_on() -> bool:
        return next(answers)

    async def again() -> None:
        raise AssertionError

    told = Telling(OnePage(), "a", begin=0, again=again, may_go_on=may_go_on)

    assert [piece async for piece in told.pieces()][1:] == [b"0", b"1"]


async def test_a_tenant_has_its_share_and_others_have_theirs(front: Front, served: Served) -> None:
    job_id, foreign = await front.scene.running(), await Scene(front.ledger, "globex").running()
    async with AsyncExitStack() as stack:
        share = [await opened_by(front, served, name, job_id, stack) for name in ("ann", "ann", "rita")]
        refused = await opened_by(front, served, "ann", job_id, stack)
        other = await opened_by(front, served, "gus", foreign, stack)
        full = await opened_by(front, served, "gus", foreign, stack)
        assert (refused.response.status_code, full.response.status_code) == (429, 503)  # which have an end
        for source in (refused, full):
            await source.response.aread()

    await eventually(lambda: _is_zero(served), "the streams to be forgotten")
    async with served.stream(front.keys["ann"], job_id) as later:
        assert later.response.status_code == 200
    assert [source.response.status_code for source in (*share, other)] == [200] * 4
    assert refused.response.headers["retry-after"] == "15"
    assert check_problem(refused.response)["type"].endswith("too_many_streams")
    assert full.response.headers["retry-after"] == "2"
    assert check_problem(full.response)["type"].endswith("no_more_streams")


async def _is_zero(served: Served) -> bool:
    return bool(served.app.state.streams.count == 0)


async def test_many_that_come_at_once_get_no_more_than_the_share(front: Front, served: Served) -> None:
    job_id = await front.scene.running()
    async with AsyncExitStack() as stack:
        sources = await asyncio.gather(*(opened_by(front, served, "ann", job_id, stack) for _ in range(20)))
        statuses = sorted(source.response.status_code for source in sources)

    assert statuses == [200] * 3 + [429] * 17


async def test_the_end_of_a_job_is_told_also_where_there_is_no_room(front: Front, dsn: str) -> None:
    job_id = await front.scene.dead()
    last = len(await front.scene.events(job_id))

    async with (
        serving(front.ledger, dsn, streams=OpenStreams(per_tenant=0)) as full,
        full.stream(front.keys["ann"], job_id, last) as source,
    ):
        status = source.response.status_code

    assert status == 204


async def test_the_share_is_a_setting(database_url: str) -> None:
    ledger = await Ledger.open(database_url, size=2, application_name="tests")
    scene = await Scene.set_up(ledger)
    key, _ = await ledger.identity.create_key("acme", "ann", frozenset({Role.SUBMIT}))
    job_id = await scene.running()
    await ledger.close()
    async with process_served(database_url, AGENTJOBS_STREAMS_PER_TENANT="1") as (_, port):
        from_process = Served(None, port)  # type: ignore[arg-type]
        async with from_process.stream(key, job_id) as first, httpx.AsyncClient() as client:
            await first.next()
            url = f"{from_process.url}/v1/jobs/{job_id}/events"
            second = await client.get(url, headers={"Authorization": f"Bearer {key}"})

    assert (first.response.status_code, second.status_code) == (200, 429)


@pytest.mark.parametrize(
    ("soft", "hard", "raised_to", "fitting"),
    [
        (1_024, 20_000, STREAMS_LIMIT + KEPT_FREE, STREAMS_LIMIT),
        (1_024, 4_096, 4_096, 4_096 - KEPT_FREE),
        (1_024, resource.RLIM_INFINITY, STREAMS_LIMIT + KEPT_FREE, STREAMS_LIMIT),
        (20_000, 20_000, None, STREAMS_LIMIT),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, STREAMS_LIMIT),
        (1_024, 1_024, None, 1_024 - KEPT_FREE),
    ],
)
def test_streams_leave_room_below_the_limit_of_open_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised_to: int | None, fitting: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.append(given))

    fits = streams_that_fit(STREAMS_LIMIT)

    assert fits == fitting
    assert limits[1:] == ([] if raised_to is None else [(raised_to, hard)])


def test_a_limit_too_low_for_requests_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))

    with pytest.raises(StartError, match="`ulimit -n`"):
        streams_that_fit(STREAMS_LIMIT)
