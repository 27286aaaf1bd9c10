"""Which workers are there: each holds an advisory lock for the life of its session."""

from __future__ import annotations

from datetime import datetime

from agentjobs import __version__
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record

LOCK_CLASS = 0x616A
"""The first half of our advisory locks; the second is the worker's number."""

CANCELLED_CHANNEL = "agentjobs_cancelled"
"""Where workers hear the id of a job that somebody cancels."""

SERVER_START_GRACE_SECONDS = 3.0


class LostWorker(Record):
    """A worker whose session ended without a word."""

    id: str
    identity: str
    lost_at: datetime


class Workers:
    """Presence, loss and takeover of workers."""

    def __init__(self, database: Database, build: str = __version__) -> None:
        self._database = database
        self._build = build

    async def register(self, connection: Connection, identity: str) -> str:
        """Take the lock of a new number in this session, then say so. Returns the id of this epoch."""
        number: int = await self._database.run.next_worker_number(connection)
        await self._database.run.hold_worker_lock(connection, lock_class=LOCK_CLASS, number=number)
        worker_id = f"{identity}#{number}"
        await self._database.run.register_worker(
            connection, id=worker_id, number=number, identity=identity, build=self._build
        )
        return worker_id

    async def hold_again(self, connection: Connection, worker_id: str) -> bool:
        """Take the lock again in a new session; False when the worker was given up meanwhile."""
        number = int(worker_id.rsplit("#", 1)[1])
        held = await self._database.run.hold_worker_lock(connection, lock_class=LOCK_CLASS, number=number)
        return bool(held) and not await self.is_lost(connection, worker_id)

    async def is_lost(self, connection: Connection, worker_id: str) -> bool:
        """Whether the worker was given up under this id."""
        return bool(await self._database.run.is_lost(connection, id=worker_id))

    async def mark_stopped(self, worker_id: str) -> None:
        """It has ended by itself, with nothing in hand."""
        await self._database.run.mark_stopped(self._database.pool, id=worker_id)

    async def without_lock(self) -> set[str]:
        """Workers whose session is gone."""
        rows = self._database.run.workers_without_lock(
            self._database.pool, lock_class=LOCK_CLASS, grace_seconds=SERVER_START_GRACE_SECONDS
        )
        return {row["id"] async for row in rows}

    async def mark_lost(self, ids: set[str]) -> None:
        """Fence them."""
        await self._database.run.mark_lost(self._database.pool, ids=sorted(ids))

    async def to_take_over(self) -> list[LostWorker]:
        """Fenced workers whose work is not handed on yet."""
        rows = self._database.run.workers_to_take_over(self._database.pool)
        return [LostWorker.model_validate(dict(row)) async for row in rows]

    async def jobs_of(self, worker_id: str) -> list[str]:
        """Live jobs that the worker has worked for."""
        rows = self._database.run.jobs_of_worker(self._database.pool, id=worker_id)
        return [row["job_id"] async for row in rows]

    async def mark_taken_over(self, worker_id: str) -> None:
        """Its work is handed on; its attempts are on record as crashed."""
        await self._database.run.mark_taken_over(self._database.pool, id=worker_id)
