"""What a comparison of the ledger with Temporal asks of the ledger, and what it may put right there."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from agentjobs.ledger.database import Database
from agentjobs.ledger.jobs import Standing
from agentjobs.ledger.outbox import Topic
from agentjobs.ledger.records import Record

ENDING_SECONDS = 8 * 86_400.0
"""Longer than a record (7 days) or an undo (1 day) may be tried: workflows/options.py."""


class Compared(Standing):
    """A live job in the window of a look."""

    deadline_at: datetime
    dispatched: bool
    cancelling: bool
    still: bool
    """Nothing has happened to it for a while."""
    queued: tuple[Topic, ...]
    """What of it still waits in the outbox."""


class FindingKind(StrEnum):
    """What may be amiss of more than one job."""

    NO_WORKER = "no_worker"


class Finding(Record):
    """Something that is amiss now. `subject` is what it is about: the name of a task queue."""

    kind: FindingKind
    subject: str
    since: datetime
    last_seen_at: datetime
    detail: str


class Comparing:
    """Questions of bounded cost, and corrections that may be made twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def live_window(
        self, after: tuple[datetime | None, str], *, still_seconds: float, window: int
    ) -> list[Compared]:
        """The next live jobs of all tenants after (deadline, id), in that order."""
        after_at, after_id = after
        rows = self._database.run.live_window(
            self._database.pool, after_at=after_at, after_id=after_id, still_seconds=still_seconds, window=window
        )
        return [Compared.model_validate(dict(row)) async for row in rows]

    async def overdue(self, *, grace_seconds: float, batch: int) -> list[Standing]:
        """Live jobs whose deadline passed this long ago and that nothing moved since."""
        rows = self._database.run.overdue(
            self._database.pool, grace_seconds=grace_seconds, ending_seconds=ENDING_SECONDS, batch=batch
        )
        return [Standing.model_validate(dict(row)) async for row in rows]

    async def words_lost(self, after_id: str, *, still_seconds: float, batch: int) -> list[str]:
        """The next jobs, by id, with a reviewer's word that was delivered and is not carried out."""
        rows = self._database.run.words_lost(
            self._database.pool, after_id=after_id, still_seconds=still_seconds, batch=batch
        )
        return [row["job_id"] async for row in rows]

    async def requeue_start(self, job_id: str) -> bool:
        """Queue a start that was lost. False when there is nothing to start, or it is queued already."""
        return await self._requeue(self._database.run.requeue_start, job_id)

    async def requeue_cancel(self, job_id: str) -> bool:
        """Queue a promised cancel that was lost. False when there is none, or it is queued already."""
        return await self._requeue(self._database.run.requeue_cancel, job_id)

    async def _requeue(self, statement: Any, job_id: str) -> bool:
        async with self._database.transaction() as connection:
            # In a statement of its own: the next one must see the row of whoever held the lock before.
            await self._database.run.lock_job(connection, id=job_id)
            row = await statement(connection, job_id=job_id)
        return bool(row["queued"])

    async def final_of(self, ids: list[str], *, grace_seconds: float) -> set[str]:
        """Those of these jobs that reached their end longer ago than this."""
        rows = self._database.run.final_of(self._database.pool, ids=ids, grace_seconds=grace_seconds)
        return {row["id"] async for row in rows}

    async def work_waits(self, *, still_seconds: float) -> bool:
        """Whether a job should be moving, and has not for this long."""
        return bool(await self._database.run.work_waits(self._database.pool, still_seconds=still_seconds))

    async def absent(self, identities: set[str]) -> set[str]:
        """Those of these workers that are known to have stopped, or to be lost."""
        rows = self._database.run.absent_identities(self._database.pool, identities=sorted(identities))
        return {row["identity"] async for row in rows}

    async def note(self, kind: FindingKind, subject: str, detail: str, *, tell_seconds: float) -> bool:
        """Keep a finding; True when it is to be told now."""
        return bool(
            await self._database.run.note_finding(
                self._database.pool, kind=kind, subject=subject, detail=detail, tell_seconds=tell_seconds
            )
        )

    async def clear(self, kind: FindingKind, subject: str) -> bool:
        """The finding holds no more; True when there was one."""
        return bool(await self._database.run.clear_finding(self._database.pool, kind=kind, subject=subject))

    async def findings(self) -> list[Finding]:
        """What is amiss now, oldest first."""
        rows = self._database.run.list_findings(self._database.pool)
        return [Finding.model_validate(dict(row)) async for row in rows]
