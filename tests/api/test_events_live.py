"""Event streams under way: how events arrive, what streams cost, and how they are ended."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import asyncpg
import pytest
from structlog.testing import capture_logs

from agentjobs.api import event_feed, event_stream
from agentjobs.ledger.events import CHANNEL
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from tests.api.event_source import Served, listener, serving, write_event
from tests.api.front import Front
from tests.api.test_process import ended
from tests.api.test_process import served as process_served
from tests.ledger.scene import Scene
from tests.world import eventually

NEVER = 3_600.0
LISTENERS = """
SELECT pid FROM pg_stat_activity WHERE application_name = 'agentjobs-api-listen' AND datname = current_database()
"""
KILL_ALL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def served(front: Front, dsn: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(event_feed, "LINGER_SECONDS", 0.05)
    async with serving(front.ledger, dsn) as opened:
        yield opened


async def test_the_bell_alone_brings_events(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await listener(scene)
        monkeypatch.setattr(event_feed, "POLL_SECONDS", NEVER)
        await served.app.state.event_feed.run_once()

        await write_event(scene, job_id, text="rung")

        assert (await source.next()).data["text"] == "rung"


async def test_the_poll_brings_what_no_bell_told_of(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "COMMENT_SECONDS", NEVER)  # after a comment a stream looks anew
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await scene.execute("ALTER TABLE job_events DISABLE TRIGGER job_events_ring")
        feed = served.app.state.event_feed
        await eventually(lambda: _is(feed.waiting_count == 1), "the stream to wait")
        await feed.run_once()  # so that the newcomer's own look is over

        await write_event(scene, job_id, text="silent")
        told = await source.next()

    await scene.execute("ALTER TABLE job_events ENABLE TRIGGER job_events_ring")
    assert told.data["text"] == "silent"


async def test_a_listener_that_is_killed_loses_nothing_and_comes_back(
    scene: Scene, served: Served, key: str
) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        snapshot = await source.next()
        before = await listener(scene)

        await scene.execute("SELECT pg_terminate_backend($1)", before)
        for number in range(10):
            await write_event(scene, job_id, text=str(number))
        told = [await source.next() for _ in range(10)]

        after = await listener(scene)
    assert [message.data["seq"] for message in told] == [int(snapshot.id or 0) + 1 + n for n in range(10)]
    assert after != before


async def test_while_nobody_follows_no_writer_rings(scene: Scene, served: Served, key: str, dsn: str) -> None:
    job_id = await scene.running()
    heard: list[str] = []
    session = await asyncpg.connect(dsn)
    await session.add_listener(CHANNEL, lambda *given: heard.append(given[2]))
    async with served.stream(key, job_id) as source:
        await source.next()
        await listener(scene)
        await write_event(scene, job_id, text="followed")
        await source.next()

    async def nobody_listens() -> bool:
        return not await scene.rows(LISTENERS)

    await eventually(nobody_listens, "the listener to leave")
    while_followed = len(heard)
    await write_event(scene, job_id, text="alone")
    await session.execute("SELECT 1")  # what was told before it has arrived with its answer
    await session.close()

    assert while_followed > 0
    assert len(heard) == while_followed


async def test_writers_do_not_wait_for_the_bell(scene: Scene, served: Served, key: str, dsn: str) -> None:
    first, second = await scene.running(), await scene.running()
    async with served.stream(key, first, 0) as source, scene.ledger.database.transaction() as open_transaction:
        await listener(scene)
        await open_transaction.execute(
            "INSERT INTO job_events (job_id, seq, type) VALUES ($1, 1000, 'text')", second
        )  # rings at its commit, which is not yet

        await asyncio.wait_for(write_event(scene, first, text="not held up"), 10)

        while (await source.next()).event != "text":
            pass


async def test_two_hundred_streams_take_no_connection_of_the_pool(
    front: Front, scene: Scene, key: str, dsn: str
) -> None:
    jobs = [await scene.running() for _ in range(20)]
    narrow = await Ledger.open(dsn, size=2, application_name="narrow")
    async with AsyncExitStack() as opened:
        opened.push_async_callback(narrow.close)
        served = await opened.enter_async_context(serving(narrow, dsn))
        sources = [
            await opened.enter_async_context(served.stream(key, job_id)) for job_id in jobs for _ in range(10)
        ]
        for source in sources:
            await source.next()
        feed = served.app.state.event_feed
        await eventually(lambda: _is(feed.waiting_count == len(jobs)), "all streams to wait, by job")

        for job_id in jobs:
            await write_event(scene, job_id, text=job_id)
        told = [await source.next() for source in sources]

        sessions = await scene.rows("SELECT FROM pg_stat_activity WHERE application_name = 'narrow'")
    assert [message.data["text"] for message in told] == [job_id for job_id in jobs for _ in range(10)]
    assert len(sessions) <= 2
    assert served.app.state.streams.count == 0
    assert feed.waiting_count == 0


async def _is(true: bool) -> bool:
    return true


async def test_a_client_that_leaves_is_forgotten(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    streams, feed = served.app.state.streams, served.app.state.event_feed

    async with served.stream(key, job_id) as source:
        await source.next()
        await eventually(lambda: _is(feed.waiting_count == 1), "the stream to wait")

    await eventually(lambda: _is(streams.count == 0 and feed.waiting_count == 0), "the stream to be forgotten")


async def test_a_reader_that_does_not_read_is_dropped_and_holds_nobody_up(
    scene: Scene, front: Front, key: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "WRITE_SECONDS", 2)
    job_id = await scene.running()
    for _ in range(100):
        await write_event(scene, job_id, text="x" * 20_000)
    async with serving(front.ledger, dsn, send_buffer=16_384) as served:
        with socket.socket() as deaf, capture_logs() as logs:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            deaf.connect(("127.0.0.1", served.port))
            ask = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 0\r\n"
            deaf.sendall(f"{ask}Authorization: Bearer {key}\r\n\r\n".encode())
            streams = served.app.state.streams
            await eventually(lambda: _is(streams.count == 1), "the stream to open")

            async with served.stream(key, job_id, 0) as source:
                seqs = [int((await source.next()).id or 0) for _ in range(100)]
                await eventually(lambda: _is(streams.count == 1), "the slow one to be dropped")
                await write_event(scene, job_id, text="on")
                while int((await source.next()).id or 0) < 100 + 2:
                    pass
        kinds = [one.get("error_type") for one in logs if one["event"] == "event_stream_broke_off"]
    assert seqs == list(range(1, 101))
    assert kinds == ["SlowReader"]


async def test_a_stream_has_an_age_limit_and_can_be_gone_on_with(
    scene: Scene, served: Served, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "AGE_SECONDS", 0.2)
    monkeypatch.setattr(event_stream, "COMMENT_SECONDS", 0.05)
    job_id = await scene.running()

    messages = await served.read(key, job_id)
    await write_event(scene, job_id, text="later")
    following = await served.read(key, job_id, messages[-1].id)

    assert [message.event for message in messages] == ["snapshot"]
    assert [message.data["text"] for message in following] == ["later"]


async def test_a_database_that_is_away_for_a_moment_ends_no_stream(scene: Scene, served: Served, key: str) -> None:
    job_id = await scene.running()
    async with served.stream(key, job_id) as source:
        await source.next()
        await scene.execute(KILL_ALL)

        await eventually(lambda: _written(scene, job_id), "the database to be back")
        told = await source.next()

    assert told.data["text"] == "back"


async def _written(scene: Scene, job_id: str) -> bool:
    try:
        await write_event(scene, job_id, text="back")
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        return False
    return True


async def test_sigterm_ends_open_streams_cleanly_and_at_once(database_url: str) -> None:
    ledger = await Ledger.open(database_url, size=2, application_name="tests")
    scene = await Scene.set_up(ledger)
    key, _ = await ledger.identity.create_key("acme", "ann", frozenset({Role.SUBMIT}))
    job_id = await scene.running()
    await ledger.close()
    async with process_served(database_url) as (process, port):
        from_process = Served(None, port)  # type: ignore[arg-type]
        async with from_process.stream(key, job_id) as source:
            await source.next()
            process.send_signal(signal.SIGTERM)
            rest = await source.rest()
        code, said = await ended(process)

    assert (rest, code) == ([], 0)
    told = [json.loads(line) for line in said.splitlines()]
    assert told[-1]["event"] == "stopped"
    assert not [one for one in told if one.get("level") == "error"]
    assert "timeout graceful shutdown exceeded" not in said
