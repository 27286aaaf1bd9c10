"""One reader of events for all streams of this process.

A stream says how far it has come and gets the next page. Streams that are at the same place share one read and
one encoding; all that wait share one statement. So a thousand streams cost no connection each and no poll each,
and what waits in memory for a stream is one page at most.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import structlog

from agentjobs.api.event_format import encoded
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.events import Events, Page, Place

log = structlog.get_logger()

POLL_SECONDS: Final = 1.0
"""How late an event comes whose word was lost."""

GATHER_SECONDS: Final = 0.02
"""What happens within this costs one statement; nobody sees it. It also lets a writer end that did not ring,
because another one did."""

PLACES_AT_ONCE: Final = 1_000
UNAVAILABLE_PAUSE_SECONDS: Final = 1.0
LINGER_SECONDS: Final = 10.0
"""How long the bell's session outlives the last stream: clients come back."""


@dataclass(frozen=True)
class Next:
    """What a stream sends next. `first` and `last` are seqs; without events there are none."""

    wire: tuple[bytes, ...]
    first: int | None
    last: int | None
    is_end: bool
    """Nothing more happens to the job of itself after this."""


@dataclass
class _Waiting:
    next: asyncio.Future[Next] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    streams: int = 0


class EventFeed:
    """Read by any number of streams; `run` reads for them."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._waiting: dict[Place, _Waiting] = {}
        self._fresh: set[Place] = set()
        self._rung = False
        self._stirred = asyncio.Event()
        self._all_read_at = 0.0

    @property
    def waiting_count(self) -> int:
        """At how many places streams wait."""
        return len(self._waiting)

    async def next(self, place: Place) -> Next:
        """What follows this place, as soon as there is something, or nothing more will come."""
        waiting = self._waiting.get(place)
        if waiting is None:
            waiting = self._waiting[place] = _Waiting()
            # It may be there already, and was told of before anybody waited here.
            self._fresh.add(place)
            self._stirred.set()
        waiting.streams += 1
        try:
            return await asyncio.shield(waiting.next)
        finally:
            waiting.streams -= 1
            if not waiting.streams and self._waiting.get(place) is waiting:
                self._forget(place)

    def ring(self) -> None:
        """There may be news, for anybody."""
        self._rung = True
        self._stirred.set()

    async def run(self) -> None:
        """Read until cancelled. Whatever befalls one reading, the next is tried."""
        while True:
            await self._until_stirred()
            try:
                await self.run_once()
            except Exception as error:
                self._rung = True
                known = is_unavailable(error)
                (log.warning if known else log.error)("events_not_read", error_type=type(error).__name__)
                await asyncio.sleep(UNAVAILABLE_PAUSE_SECONDS)

    async def run_once(self) -> int:
        """Read for those who may have news. Returns for how many places there were some."""
        places = list(self._waiting) if self._rung else list(self._fresh)
        if self._rung:
            self._all_read_at = monotonic()
        self._rung = False
        self._fresh.clear()
        self._stirred.clear()
        found = 0
        for start in range(0, len(places), PLACES_AT_ONCE):
            pages, is_all = await self._events.news(places[start : start + PLACES_AT_ONCE])
            for place, page in pages.items():
                self._give(place, page)
            found += len(pages)
            if not is_all:
                self.ring()
        return found

    async def listen(
        self, bell: Callable[[Callable[[], None]], Awaitable[None]], open_streams: asyncio.Event
    ) -> None:
        """Be woken by the bell, as long as there are streams: without any, writers need not ring."""
        while True:
            await open_streams.wait()
            listening = asyncio.ensure_future(bell(self.ring))
            try:
                await _until_unset(open_streams)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _until_stirred(self) -> None:
        # Counted from the last reading of all: newcomers stir too, and must not put the poll off for the others.
        left = self._all_read_at + POLL_SECONDS - monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                await self._stirred.wait()
        if not self._stirred.is_set():
            self._rung = True
            return
        await asyncio.sleep(GATHER_SECONDS)

    def _give(self, place: Place, page: Page) -> None:
        waiting = self._waiting.get(place)
        if waiting is None:
            return
        self._forget(place)
        waiting.next.set_result(_next(place, page))

    def _forget(self, place: Place) -> None:
        del self._waiting[place]
        self._fresh.discard(place)


async def _until_unset(event: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(LINGER_SECONDS)
        if not event.is_set():
            return


def _next(place: Place, page: Page) -> Next:
    last = page.events[-1].seq if page.events else None
    return Next(
        wire=tuple(encoded(event) for event in page.events),
        first=page.events[0].seq if page.events else None,
        last=last,
        is_end=page.resting and page.seq == (place.after if last is None else last),
    )
