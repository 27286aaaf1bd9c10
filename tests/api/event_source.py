"""A strict reader of event streams (HTML standard, 9.2.6), and the API behind a real server to read from."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from agentjobs.api.__main__ import listening_on, read_for_streams
from agentjobs.api.event_stream import OpenStreams
from agentjobs.ledger.ledger import Ledger
from tests.api.front import new_app
from tests.ledger.scene import Scene
from tests.world import eventually

PATIENCE_SECONDS = 30
WRITE_EVENT = """
WITH job AS (UPDATE jobs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING id, event_seq)
INSERT INTO job_events (job_id, seq, type, data) SELECT id, event_seq, $2, $3 FROM job
"""

LISTENING = """
SELECT pid FROM pg_stat_activity WHERE application_name = 'agentjobs-api-listen' AND datname = current_database()
INTERSECT
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 24939 AND objid = 0 AND granted
"""


async def write_event(scene: Scene, job_id: str, kind: str = "text", **data: Any) -> None:
    """One more event of the job, of no other consequence."""
    await scene.execute(WRITE_EVENT, job_id, kind, data)


@dataclass(frozen=True)
class Message:
    """One event as a browser would dispatch it."""

    id: str | None
    event: str
    data: Any


@dataclass
class EventSource:
    """One connection. Whatever is not as the standard has it fails the test."""

    response: httpx.Response
    retry: int | None = None
    comments: list[str] = field(default_factory=list)
    _parts: AsyncIterator[bytes] | None = None
    _unread: bytes = b""

    async def next(self) -> Message:
        """The next event."""
        message = await self._message()
        assert message is not None, "the stream ended"
        return message

    async def rest(self) -> list[Message]:
        """All events until the server ends the stream."""
        messages = []
        while (message := await self._message()) is not None:
            messages.append(message)
        return messages

    async def until_comment(self) -> None:
        """Until there is one more comment; no event may come before it."""
        count = len(self.comments)
        while len(self.comments) == count:
            block = await self._block()
            assert block is not None
            assert self._parsed(block) is None

    async def _message(self) -> Message | None:
        while (block := await self._block()) is not None:
            message = self._parsed(block)
            if message is not None:
                return message
        return None

    async def _block(self) -> str | None:
        self._parts = self._parts or self.response.aiter_bytes()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"\n\n" not in self._unread:
                try:
                    self._unread += await anext(self._parts)
                except StopAsyncIteration:
                    assert not self._unread, "the stream broke off within an event"
                    return None
        block, _, self._unread = self._unread.partition(b"\n\n")
        return block.decode("utf-8")

    def _parsed(self, block: str) -> Message | None:
        assert "\r" not in block
        given: dict[str, str] = {}
        for line in block.split("\n"):
            if line.startswith(":"):
                self.comments.append(line[1:].strip())
                continue
            name, colon, value = line.partition(": ")
            assert colon, f"no field: {line!r}"
            assert name in {"id", "event", "data", "retry"}, name
            assert name not in given, f"{name} twice"
            given[name] = value
        if "retry" in given:
            self.retry = int(given.pop("retry"))
        if not given:
            return None
        return Message(given.get("id"), given["event"], json.loads(given["data"]))


@dataclass(frozen=True)
class Served:
    """The API behind a real server."""

    app: FastAPI
    port: int

    @property
    def url(self) -> str:
        """Where."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def stream(
        self, key: str, job_id: str, after: int | str | None = None, **query: Any
    ) -> AsyncIterator[EventSource]:
        """A connection to the job's stream; what is no stream is in its response."""
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        path = f"/v1/jobs/{job_id}/events"
        async with (
            # Without TLS, whose set-up would cost more than all else.
            httpx.AsyncClient(
                base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS, verify=False
            ) as client,
            client.stream("GET", path, params=query) as response,
        ):
            yield EventSource(response)

    async def read(self, key: str, job_id: str, after: int | str | None = None, **query: Any) -> list[Message]:
        """All that the stream says until its end."""
        async with self.stream(key, job_id, after, **query) as source:
            assert source.response.status_code == 200, await source.response.aread()
            return await source.rest()


async def listener(scene: Scene, but: int = 0) -> int:
    """The process id of the session that listens for the API's streams, once there is one, and not `but`."""

    async def look() -> int:
        rows = [row for row in await scene.rows(LISTENING) if row["pid"] != but]
        return rows[0]["pid"] if rows else 0

    return await eventually(look, "a session that listens")


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are pytest's


@asynccontextmanager
async def serving(
    ledger: Ledger, dsn: str, send_buffer: int | None = None, streams: OpenStreams | None = None
) -> AsyncIterator[Served]:
    """The API on a free port, with all that its process has. `send_buffer` makes the kernel's small, in bytes."""
    listening = listening_on("127.0.0.1", 0)
    listening.listen()  # now: nobody who comes before the server is up is turned away
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    app = new_app(ledger)
    app.state.streams = streams or app.state.streams
    config = uvicorn.Config(
        app, loop="none", http="httptools", ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = _Server(config)
    async with read_for_streams(app, ledger, dsn):
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield Served(app, listening.getsockname()[1])
        finally:
            app.state.streams.close()
            server.should_exit = True
            await task
