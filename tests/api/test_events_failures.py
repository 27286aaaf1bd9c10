"""Event streams when a part between a writer and a reader is lost: words, sessions, connections, processes."""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Coroutine
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agentjobs.api import __main__ as api_process
from agentjobs.api import event_feed, event_stream
from agentjobs.domain.states import JobState
from agentjobs.ledger import events as ledger_events
from agentjobs.ledger import session
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from tests.api.event_source import Served, listener, serving, write_event
from tests.api.front import Front
from tests.api.test_process import served as process_served
from tests.ledger.scene import Scene
from tests.proxy import AT_ONCE_BYTES, Proxy
from tests.vanished import cut_off, cut_off_from
from tests.world import eventually

NEVER = 3_600.0
WELL_BELOW_SECONDS = 9
"""What the first statement on a connection that is gone would take, and each of the others after it."""


@pytest.fixture
async def served(front: Front, dsn: str) -> AsyncIterator[Served]:
    async with serving(front.ledger, dsn) as opened:
        yield opened


async def test_what_happens_between_snapshot_and_waiting_comes_once_and_at_once(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "POLL_SECONDS", NEVER)
    feed, stalled, go_on = served.app.state.event_feed, asyncio.Event(), asyncio.Event()
    following = feed.next

    async def after_a_stall(place: Any) -> Any:
        stalled.set()
        await go_on.wait()
        return await following(place)

    monkeypatch.setattr(feed, "next", after_a_stall)
    job_id = await scene.running()

    async with served.stream(key, job_id) as source:
        snapshot = await source.next()
        await stalled.wait()
        await listener(scene)
        for number in range(3):
            await write_event(scene, job_id, text=str(number))
        await feed.run_once()  # their ring is heard, and nobody waits yet
        go_on.set()
        told = [await source.next() for _ in range(3)]

    assert [message.data["text"] for message in told] == ["0", "1", "2"]
    assert [int(message.id or 0) - int(snapshot.id or 0) for message in told] == [1, 2, 3]


async def test_an_event_too_big_for_a_notify_is_rung_and_comes_whole(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await listener(scene)
        monkeypatch.setattr(event_feed, "POLL_SECONDS", NEVER)
        await served.app.state.event_feed.run_once()

        await write_event(scene, job_id, text="日" * 3_000)

        assert (await source.next()).data["text"] == "日" * 3_000


class Hole(Proxy):
    """Swallows, from when it is dug, what passes on the connections that there are; later ones are sound."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self._passing = asyncio.Event()
        self._passing.set()

    def dig(self) -> None:
        """Without a FIN."""
        self._passing.clear()
        self._passing = asyncio.Event()
        self._passing.set()

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Each as long as the connection is sound."""
        return _pump(self._passing, client, to_server), _pump(self._passing, server, to_client)


async def _pump(passing: asyncio.Event, source: StreamReader, sink: StreamWriter) -> None:
    while piece := await source.read(AT_ONCE_BYTES):
        if passing.is_set():
            sink.write(piece)
            await sink.drain()


async def test_a_listener_that_hears_nothing_loses_nothing_and_is_replaced(
    front: Front, scene: Scene, key: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_events, "KEEPALIVE_SECONDS", 1.0)
    port = urlsplit(dsn).port or 0
    job_id = await scene.running()
    async with (
        Hole.before(port) as hole,
        serving(front.ledger, dsn.replace(f":{port}/", f":{hole.port}/")) as served,
        served.stream(key, job_id) as source,
    ):
        await source.next()
        before = await listener(scene)

        hole.dig()
        await write_event(scene, job_id, text="not rung")
        told = await source.next()
        after = await listener(scene, but=before)

    assert told.data["text"] == "not rung"
    assert after != before


def test_a_listener_that_hears_nothing_is_replaced_within_thirty_seconds() -> None:
    unheard = 2 * ledger_events.KEEPALIVE_SECONDS / 3

    assert unheard + ledger_events.RECONNECT_SECONDS + ledger_events.SESSION_TIMEOUT_SECONDS < 30


async def test_the_server_too_lets_go_of_a_listener_that_is_gone(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await listener(scene)
        settings = await served.app.state.ledger.database.run.notice_lost_peer(scene.ledger.database.pool)

    assert tuple(settings) == ("10", "5", "3", "30000")


async def test_sessions_whose_server_is_gone_are_dropped_all_together(
    front: Front, scene: Scene, key: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PROBE_AFTER_SECONDS", "PROBE_EVERY_SECONDS", "PROBES"):
        monkeypatch.setattr(session, name, 1)
    monkeypatch.setattr(session, "UNANSWERED_MILLISECONDS", 1_000)
    port = urlsplit(dsn).port or 0
    job_id = await scene.running()
    async with Hole.before(port) as way:  # so that only these sessions are cut off
        past = dsn.replace(f":{port}/", f":{way.port}/")
        ledger = await Ledger.open(past, size=5, application_name="cut off")
        async with serving(ledger, dsn) as served, served.stream(key, job_id) as source:
            await source.next()
            await asyncio.gather(*(ledger.database.pool.fetch("SELECT pg_sleep(0.2)") for _ in range(5)))

            cut = cut_off_from(way.port)
            await write_event(scene, job_id, text="after all")
            async with asyncio.timeout(WELL_BELOW_SECONDS):
                told = await source.next()
        ledger.database.pool.terminate()

    assert cut == 5
    assert told.data["text"] == "after all"


async def test_a_client_that_vanished_is_noticed(
    front: Front, scene: Scene, key: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_process, "DEAF_MILLISECONDS", 500)
    monkeypatch.setattr(event_stream, "COMMENT_SECONDS", 0.05)
    monkeypatch.setattr(event_stream, "WRITE_SECONDS", NEVER)
    job_id = await scene.running()
    async with serving(front.ledger, dsn) as served:
        streams = served.app.state.streams

        async def count() -> int:
            return int(streams.count)

        with socket.create_connection(("127.0.0.1", served.port)) as vanishing:
            ask = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            vanishing.sendall(ask.encode())
            await eventually(count, "the stream to open")

            cut_off(vanishing)

            async def none() -> bool:
                return await count() == 0

            await eventually(none, "the stream to be closed")


def test_a_client_that_vanished_is_noticed_within_a_minute() -> None:
    assert event_stream.COMMENT_SECONDS + api_process.DEAF_MILLISECONDS / 1_000 < 60


async def test_a_process_that_is_killed_is_gone_on_from_at_another_to_the_byte(
    database_url: str,
) -> None:
    ledger = await Ledger.open(database_url, size=4, application_name="tests")
    scene = await Scene.set_up(ledger)
    key, _ = await ledger.identity.create_key("acme", "ann", frozenset({Role.SUBMIT}))
    job_id = await scene.running()
    async with process_served(database_url) as (process, port), serving(ledger, database_url) as other:
        async with opened_from(port, key, job_id, 0) as response:
            parts = response.aiter_bytes()
            before = b""
            while before.count(b"\nid: ") + before.startswith(b"id: ") < 12:
                await write_event(scene, job_id, text="日本\n🖨")
                before += await anext(parts)
            process.kill()
            with pytest.raises(httpx.TransportError):
                while True:
                    before += await anext(parts)
        told = whole_events(before)
        await write_event(scene, job_id, text="while nobody reads")
        await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

        resumed = await body_of(other.port, key, job_id, len(told))
        everything = await body_of(other.port, key, job_id, 0)
    await ledger.close()

    assert len(told) >= 12
    assert told + resumed == everything
    assert [one.split(b"\n")[-1] for one in everything] == [b"id: %d" % (n + 1) for n in range(len(everything))]


def opened_from(port: int, key: str, job_id: str, after: int) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Last-Event-ID": str(after)}
    return httpx.AsyncClient(verify=False).stream(
        "GET", f"http://127.0.0.1:{port}/v1/jobs/{job_id}/events", headers=headers, timeout=30
    )


async def body_of(port: int, key: str, job_id: str, after: int) -> list[bytes]:
    async with opened_from(port, key, job_id, after) as response:
        return whole_events(await response.aread())


def whole_events(body: bytes) -> list[bytes]:
    blocks, _, _ = body.rpartition(b"\n\n")
    return [block for block in blocks.split(b"\n\n") if b"data: " in block]
