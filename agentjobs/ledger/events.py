"""The events of jobs, read for those who follow them, and the bell that says that there are new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import asyncpg
import asyncpg_listen

from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import EventRecord, JobRecord, Record
from agentjobs.ledger.session import Session

CHANNEL = "agentjobs_events"
"""Rung without a payload: equal notifies collapse, most are left out on purpose, and any may be lost."""

LOCK_CLASS = 24939
"""The first half of the two advisory locks of migration 0004."""

PAGE_EVENTS = 64
"""As many as a reader gets at a time, so that what waits for a slow one stays small."""

PAGES_ROWS = 2_000
"""As many as one statement brings for all readers together."""

SESSION_TIMEOUT_SECONDS = 5.0
RECONNECT_SECONDS = 1.0
KEEPALIVE_SECONDS = 10.0
"""A listening session is asked for a sign of life after a third of this, and has as long to answer."""


class Place(NamedTuple):
    """How far a reader has come: after this seq of this job."""

    job_id: str
    after: int


class Stand(Record):
    """A job, up to which event that is true, and whether nothing more happens of itself."""

    job: JobRecord
    seq: int
    resting: bool


class Page(Record):
    """What follows a place, in order. `seq` and `resting` are the job's, of the same moment."""

    events: tuple[EventRecord, ...]
    seq: int
    resting: bool


class Events:
    """Reads only. Seqs are drawn under the lock of the job's row: what is read has no gap that is filled later."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stand(self, tenant: str, job_id: str, *, user: str | None = None) -> Stand | None:
        """A job of this tenant (and of this user, if given)."""
        row = await self._database.run.stand_of_job(self._database.pool, tenant=tenant, id=job_id, user=user)
        if row is None:
            return None
        return Stand(job=JobRecord.model_validate(dict(row)), seq=row["event_seq"], resting=row["resting"])

    async def news(self, places: Sequence[Place]) -> tuple[dict[Place, Page], bool]:
        """The next page of each place that has one, or that no more will come for; and whether that is all."""
        found = self._database.run.news(
            self._database.pool,
            job_ids=[place.job_id for place in places],
            afters=[place.after for place in places],
            page=PAGE_EVENTS,
            rows=PAGES_ROWS,
        )
        rows = [row async for row in found]
        of_each = groupby(rows, key=lambda row: row["place"])
        pages = {places[number - 1]: _page(list(of_one)) for number, of_one in of_each}
        return pages, len(rows) < PAGES_ROWS


class Bell:
    """A session of its own, outside the pool: a listener of a pooled connection is lost when that goes back."""

    def __init__(self, database: Database, dsn: str, application_name: str) -> None:
        self._database = database
        self._dsn = dsn
        self._name = application_name

    async def listen(self, ring: Callable[[], None]) -> None:
        """Call `ring` whenever there may be new events, until cancelled. While this runs, writers ring."""

        async def heard(what: asyncpg_listen.NotificationOrTimeout) -> None:
            if isinstance(what, asyncpg_listen.Notification):
                ring()

        listener = asyncpg_listen.NotificationListener(self._open, reconnect_delay=RECONNECT_SECONDS)
        policy = asyncpg_listen.ListenPolicy.LAST
        await listener.run({CHANNEL: heard}, policy=policy, notification_timeout=KEEPALIVE_SECONDS)

    async def _open(self) -> asyncpg.Connection[asyncpg.Record]:
        session = await asyncpg.connect(
            self._dsn,
            timeout=SESSION_TIMEOUT_SECONDS,
            command_timeout=SESSION_TIMEOUT_SECONDS,
            connection_class=Session,
            server_settings={"application_name": self._name},
        )
        await self._prepare(session)
        return session

    async def _prepare(self, session: Connection) -> None:
        await self._database.run.notice_lost_peer(session)
        await self._database.run.hold_followed_lock(session, lock_class=LOCK_CLASS)


def _page(rows: Sequence[asyncpg.Record]) -> Page:
    events = [EventRecord.model_validate(dict(row)) for row in rows if row["seq"] is not None]
    return Page(events=tuple(events), seq=rows[0]["event_seq"], resting=rows[0]["resting"])
