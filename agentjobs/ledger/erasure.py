"""Erasure on request: of one job, or of all that a user has submitted until then.

Only an ended job is erased: until then its receipts are needed. So a live one is cancelled first and a dead one
discarded, with all that belongs to it, and the erasure waits for their ends. What is left of an erased job is a
row that says so. Its workflow is deleted as that of a job whose content has expired (retention.py).
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import datetime
from typing import Final

from agentjobs.domain import keys
from agentjobs.domain.states import FINAL, JobState
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.dead_letters import DeadLetters, NotOpen
from agentjobs.ledger.jobs import JobErased, Jobs
from agentjobs.ledger.records import Record

BATCH: Final = 50
"""Jobs in one transaction."""

OUTSIDE_LIMIT: Final = 100
"""As many of the things left outside are named; the others are counted."""

DISCARD_NOTE: Final = "erasure was requested"


class StillLive(Exception):
    """The job has not ended: cancel it, then erase it."""

    def __init__(self, state: JobState) -> None:
        super().__init__(f"the job is {state}")
        self.state = state


class ErasureRecord(Record):
    """An order to erase. Exactly one of `user` and `job_id` is there."""

    id: str
    tenant: str
    user: str | None
    job_id: str | None
    requested_by: str
    created_at: datetime
    completed_at: datetime | None


class Progress(Record):
    """How far it has come, counted over the jobs whose rows are still there."""

    jobs: int
    erased: int
    not_ended: int
    workflows_left: int


class ListedErasure(Progress):
    """An order with how far it has come."""

    id: str
    user: str | None
    job_id: str | None
    requested_by: str
    created_at: datetime
    completed_at: datetime | None


class LeftOutside(Record):
    """What was done (state `begun`: perhaps) at a destination that is not ours. `key`: how it is called there."""

    job_id: str
    step: str
    tool: str
    key: str
    state: str


class Erasures:
    """Orders to erase, and their carrying out."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs = Jobs(database)
        self._letters = DeadLetters(database)

    async def of_job(self, tenant: str, job_id: str, *, actor: str) -> ErasureRecord | None:
        """Order one job's erasure. An ended job is erased when this returns; a dead one is discarded first.

        None for an unknown job. Raises StillLive or JobErased. Repeated while it is under way: the same order.
        """
        async with self._database.transaction() as connection:
            job = await self._database.run.lock_to_erase(connection, id=job_id, tenant=tenant)
            if job is None:
                return None
            if job["erased_at"] is not None:
                raise JobErased
            state = JobState(job["state"])
            if state not in FINAL | {JobState.DEAD}:
                raise StillLive(state)
            erasure = await self._ordered(connection, tenant, job_id=job_id, actor=actor)
            if state in FINAL:
                await self._erase(connection, erasure, [job_id])
            elif job["letter_state"] == "open":
                await self._discard(connection, erasure, job_id)
        return erasure

    async def of_user(self, tenant: str, user: str, *, actor: str) -> ErasureRecord:
        """Order the erasure of all jobs that the user has submitted until now. `advance` carries it out."""
        async with self._database.transaction() as connection:
            return await self._insert(connection, tenant, user=user, actor=actor)

    async def read(self, tenant: str, erasure_id: str) -> ErasureRecord | None:
        """One order."""
        row = await self._database.run.read_erasure(self._database.pool, id=erasure_id, tenant=tenant)
        return None if row is None else ErasureRecord.model_validate(dict(row))

    async def page(self, tenant: str, *, before: tuple[datetime, str] | None, limit: int) -> list[ListedErasure]:
        """Latest first; `before` is (created_at, id) of the last one of the page before."""
        before_at, before_id = before or (None, None)
        rows = self._database.run.list_erasures(
            self._database.pool, tenant=tenant, before_at=before_at, before_id=before_id, limit=limit
        )
        return [ListedErasure.model_validate(dict(row)) async for row in rows]

    async def progress(self, erasure_id: str) -> Progress:
        """How far it has come."""
        row = await self._database.run.erasure_progress(self._database.pool, id=erasure_id)
        return Progress.model_validate(dict(row))

    async def left_outside(self, erasure_id: str) -> tuple[list[LeftOutside], int]:
        """What we cannot erase: the first OUTSIDE_LIMIT, and how many. Known as long as the jobs' rows."""
        rows = self._database.run.left_outside(self._database.pool, id=erasure_id, limit=OUTSIDE_LIMIT)
        found = [dict(row) async for row in rows]
        for row in found:
            row["key"] = keys.destination_key(row["key"], row["generation"])
        return [LeftOutside.model_validate(row) for row in found], found[0]["total"] if found else 0

    async def under_way(self) -> list[ErasureRecord]:
        """Orders of all tenants that are not carried out yet, the oldest first."""
        rows = self._database.run.erasures_under_way(self._database.pool, batch=BATCH)
        return [ErasureRecord.model_validate(dict(row)) async for row in rows]

    async def advance(self, erasure: ErasureRecord) -> int:
        """One batch of it, also by two at once; returns how many jobs were erased, cancelled or discarded."""
        async with self._database.transaction() as connection:
            erased = await self._erase_ended(connection, erasure)
        stopped = await self._stop_others(erasure)
        await self._database.run.complete_erasure(self._database.pool, id=erasure.id)
        return erased + stopped

    async def _ordered(self, connection: Connection, tenant: str, *, job_id: str, actor: str) -> ErasureRecord:
        row = await self._database.run.erasure_of_job(connection, job_id=job_id, tenant=tenant)
        if row is not None:
            return ErasureRecord.model_validate(dict(row))
        return await self._insert(connection, tenant, job_id=job_id, actor=actor)

    async def _insert(
        self,
        connection: Connection,
        tenant: str,
        *,
        actor: str,
        user: str | None = None,
        job_id: str | None = None,
    ) -> ErasureRecord:
        row = await self._database.run.insert_erasure(
            connection, id=str(uuid.uuid4()), tenant=tenant, user=user, job_id=job_id, requested_by=actor
        )
        return ErasureRecord.model_validate(dict(row))

    async def _erase_ended(self, connection: Connection, erasure: ErasureRecord) -> int:
        run = self._database.run
        rows = run.claim_ended_to_erase(connection, erasure_id=erasure.id, batch=BATCH)
        ids = [row["id"] async for row in rows]
        if ids:
            await self._erase(connection, erasure, ids)
        if erasure.user is not None:
            await run.erase_tickets_of_user(
                connection, tenant=erasure.tenant, user=erasure.user, until=erasure.created_at
            )
        return len(ids)

    async def _erase(self, connection: Connection, erasure: ErasureRecord, ids: list[str]) -> None:
        run = self._database.run
        await run.remove_content(connection, ids=ids)
        await run.mark_erased(connection, ids=ids, actor=erasure.requested_by, erasure_id=erasure.id)
        await run.erase_fingerprints(connection, ids=ids)
        await run.erase_tickets(connection, ids=ids)
        await run.erase_audit_notes(connection, ids=ids, tenant=erasure.tenant)

    async def _stop_others(self, erasure: ErasureRecord) -> int:
        rows = self._database.run.not_ended_to_erase(self._database.pool, erasure_id=erasure.id, batch=BATCH)
        not_ended = [(row["job_id"], JobState(row["state"])) async for row in rows]
        for job_id, state in not_ended:
            if state is JobState.DEAD:
                async with self._database.transaction() as connection:
                    await self._discard(connection, erasure, job_id)
            else:
                await self._jobs.request_cancel(erasure.tenant, job_id, user=None, actor=erasure.requested_by)
        return len(not_ended)

    async def _discard(self, connection: Connection, erasure: ErasureRecord, job_id: str) -> None:
        with suppress(NotOpen):  # somebody decided at this moment: it ends, or is met again
            await self._letters.ask(
                connection,
                "discard",
                erasure.tenant,
                job_id,
                actor=erasure.requested_by,
                note=DISCARD_NOTE,
                payload={},
            )
