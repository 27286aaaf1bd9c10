"""A job's event stream as an answer, and the streams that a process has open.

An answer of our own and not FastAPI's `EventSourceResponse`: that one has no bound on a write, so a client that
does not read holds its generator for ever, and none on age; and nobody can end all of them when the process stops.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog
from fastapi import Response
from starlette.types import Receive, Scope, Send

from agentjobs.api.event_feed import EventFeed
from agentjobs.api.event_format import COMMENT, encoded_resync, encoded_retry, encoded_snapshot
from agentjobs.api.problems import RETRY_SECONDS, Problem
from agentjobs.api.schemas import JobShown
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.events import Place

log = structlog.get_logger()

COMMENT_SECONDS: Final = 15.0
"""Proxies close what is silent for longer (HTML standard, 9.2.7), and only a write notices a broken connection."""

CHECK_SECONDS: Final = 20.0
"""How often the caller's key is looked at again. With the seconds for which a key is remembered, and a write that
takes as long as it may, a stream ends within a minute of its key."""

AGE_SECONDS: Final = 3600.0
"""No stream is older: clients move to other processes after a while, and resume where they were."""

WRITE_SECONDS: Final = 30.0
"""Who takes nothing for so long is dropped, and may resume."""

LAST_WRITE_SECONDS: Final = 1.0
"""The end of a stream waits for nobody: the process may be about to stop."""

STREAMS_LIMIT: Final = 5_000
"""Of one process. A stream costs a socket and some 40 kB."""

TENANT_RETRY_SECONDS: Final = 15
"""Streams last; nothing is gained by asking for room more often."""

HEADERS: Final = {
    # Without a charset: the standard knows no other than UTF-8.
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    # nginx and its kin would hold events back until a buffer is full.
    "X-Accel-Buffering": "no",
}


class OpenStreams:
    """The streams of this process. What it cannot hold is 503; what one tenant may not have of it is 429."""

    def __init__(self, *, per_tenant: int = STREAMS_LIMIT, in_all: int = STREAMS_LIMIT) -> None:
        self.any = asyncio.Event()
        self._per_tenant = per_tenant
        self._in_all = in_all
        self._of_tenant: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._tasks)

    @property
    def closed(self) -> bool:
        """Whether the process is ending."""
        return self._closed

    def check_room(self, tenant: str) -> None:
        """Raise Problem 429 when the tenant has its share; 503 when the process is full, or is ending."""
        if self._of_tenant[tenant] >= self._per_tenant:
            detail = (
                f"Your tenant has {self._per_tenant} streams open here: close some, or ask for the job's status."
            )
            raise Problem(429, "too_many_streams", detail, headers={"Retry-After": str(TENANT_RETRY_SECONDS)})
        if self._closed or self.count >= self._in_all:
            detail = "No stream can be opened now: ask for the job's status, or connect later."
            raise Problem(503, "no_more_streams", detail, headers={"Retry-After": str(RETRY_SECONDS)})

    @contextlib.contextmanager
    def holding(self, task: asyncio.Task[None], tenant: str) -> Iterator[None]:
        """The stream that this task writes is open while the block runs."""
        self._tasks.add(task)
        self._of_tenant[tenant] += 1
        self.any.set()
        if self._closed:
            task.cancel()
        try:
            yield
        finally:
            self._tasks.discard(task)
            self._of_tenant[tenant] -= 1
            if not self._of_tenant[tenant]:
                del self._of_tenant[tenant]
            if not self._tasks:
                self.any.clear()

    def close(self) -> None:
        """End them all now, cleanly; clients connect again elsewhere and miss nothing."""
        self._closed = True
        for task in self._tasks:
            task.cancel()


class SlowReader(Exception):
    """The client takes nothing."""


@dataclass(frozen=True)
class Snapshot:
    """The job's status, true up to `seq`. `is_end`: nothing more happens to the job of itself."""

    job: JobShown
    seq: int
    is_end: bool


class Telling:
    """What one stream says, from its first line to its last."""

    def __init__(
        self,
        feed: EventFeed,
        job_id: str,
        *,
        begin: Snapshot | int,
        again: Callable[[], Awaitable[Snapshot | None]],
        may_go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        """`begin` is what to say first, or the seq of the last event that the client has. `again` reads the job
        anew (None: it is no longer the caller's); `may_go_on` says whether the caller's key still holds."""
        self._feed = feed
        self._job_id = job_id
        self._begin = begin
        self._again = again
        self._may_go_on = may_go_on
        self._after = 0
        self._is_over = False
        self._now = asyncio.get_running_loop().time
        self._ends = self._now() + AGE_SECONDS
        self._check = self._now() + CHECK_SECONDS

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Whole events and comments. Ends at the job's end, with the caller's key, and at the age limit."""
        yield encoded_retry() + self._opening()
        while not self._is_over:
            for piece in await self._some():
                # Before each: to a reader that is slow all the time, a page takes half an hour.
                if not await self._goes_on():
                    return
                yield piece

    async def _goes_on(self) -> bool:
        now = self._now()
        if now >= self._ends:
            return False
        if now < self._check:
            return True
        self._check = now + CHECK_SECONDS
        return await self._is_allowed()

    def _opening(self) -> bytes:
        if isinstance(self._begin, Snapshot):
            return self._snapshot(self._begin)
        self._after = self._begin
        return b""

    async def _some(self) -> tuple[bytes, ...]:
        try:
            async with asyncio.timeout(COMMENT_SECONDS):
                following = await self._feed.next(Place(self._job_id, self._after))
        except TimeoutError:
            return (COMMENT,)
        if following.first != self._after + 1 and not (following.first is None and following.is_end):
            return await self._resync()
        self._after = following.last or self._after
        self._is_over = following.is_end
        return following.wire

    async def _resync(self) -> tuple[bytes, ...]:
        """Old events were removed meanwhile."""
        snapshot = await self._again()
        if snapshot is None:
            self._is_over = True
            return ()
        return encoded_resync(self._after), self._snapshot(snapshot)

    def _snapshot(self, snapshot: Snapshot) -> bytes:
        self._after, self._is_over = snapshot.seq, snapshot.is_end
        return encoded_snapshot(snapshot.job, snapshot.seq)

    async def _is_allowed(self) -> bool:
        try:
            return await self._may_go_on()
        except Exception as error:
            if not is_unavailable(error):
                raise
            return True  # nothing can be read meanwhile either; the next look comes


class EventStream(Response):
    """The answer. A client that is gone, or does not read, ends it; so does the end of the process."""

    media_type = None  # else FastAPI documents the stream as one text; see events.py

    def __init__(self, telling: Telling, streams: OpenStreams, tenant: str) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._telling = telling
        self._streams = streams
        self._tenant = tenant

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Write until one side has had enough."""
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            with self._streams.holding(writing, self._tenant):
                await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            leaving.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)
        if not writing.cancelled() and (error := writing.exception()) is not None:
            log.warning("event_stream_broke_off", error_type=type(error).__name__)
            if isinstance(error, SlowReader):
                return  # without an end: the server cuts the connection
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITE_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with contextlib.aclosing(self._telling.pieces()) as pieces:
            async for piece in pieces:
                try:
                    async with asyncio.timeout(WRITE_SECONDS):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                except TimeoutError:
                    raise SlowReader from None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
