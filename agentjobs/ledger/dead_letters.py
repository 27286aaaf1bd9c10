"""Dead letters: read, and a person's word on them recorded."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import DeadLetterRecord, Record

Action = Literal["redrive", "discard"]


class NotOpen(Exception):
    """The letter takes no word now: it is being redriven or discarded, or was already."""

    def __init__(self, state: str) -> None:
        super().__init__(f"the letter is {state}")
        self.state = state


class ReportLine(Record):
    """Open letters of one reason, agent and policy version."""

    reason: str
    agent: str
    policy_version: str
    count: int
    oldest_at: datetime


class Report(BaseModel):
    """The tenant's dead letters, counted."""

    open: list[ReportLine]
    by_state: dict[str, int]


class Spent(Record):
    """What all attempts of one step at one model have cost, and hold back. Money is in US dollars."""

    step: str
    model: str | None
    attempts: int
    tokens_in: int
    tokens_out: int
    usd: Decimal
    tokens_reserved: int
    usd_reserved: Decimal


class DeadLetters:
    """Dead letters of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        tenant: str,
        *,
        reason: str | None = None,
        agent: str | None = None,
        closed: bool = False,
        before: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[DeadLetterRecord]:
        """Letters, latest death first; with `closed` also those that were redriven."""
        before_at, before_id = before or (None, None)
        rows = self._database.run.list_dead_letters(
            self._database.pool,
            tenant=tenant,
            reason=reason,
            agent=agent,
            closed=closed,
            before_at=before_at,
            before_id=before_id,
            limit=limit,
        )
        return [DeadLetterRecord.model_validate(dict(row)) async for row in rows]

    async def read(self, tenant: str, job_id: str) -> DeadLetterRecord | None:
        """One letter."""
        row = await self._database.run.read_dead_letter(self._database.pool, tenant=tenant, id=job_id)
        return None if row is None else DeadLetterRecord.model_validate(dict(row))

    async def read_input(self, tenant: str, job_id: str, *, actor: str) -> str | None:
        """The original request of a letter's job. Who reads it is put on record with the reading."""
        text: str | None = await self._database.run.read_letter_input(
            self._database.pool, tenant=tenant, id=job_id, actor=actor
        )
        return text

    async def spent(self, tenant: str, job_id: str) -> list[Spent]:
        """What a letter's job has spent on what. Steps that cost nothing are left out."""
        rows = self._database.run.spent_on_letter(self._database.pool, tenant=tenant, id=job_id)
        return [Spent.model_validate(dict(row)) async for row in rows]

    async def request(
        self, action: Action, tenant: str, job_id: str, *, actor: str, note: str, payload: dict[str, Any]
    ) -> bool:
        """Record a person's word and queue it. False for an unknown letter; raises NotOpen."""
        row = await self._database.run.request_resolution(
            self._database.pool,
            action=action,
            tenant=tenant,
            id=job_id,
            actor=actor,
            note=note,
            payload=payload,
        )
        if row is None:
            return False
        if not row["accepted"]:
            raise NotOpen(row["state_before"])
        return True

    async def still_requested(self, job_id: str, generation: int) -> bool:
        """Whether the word of this generation still waits to be carried out."""
        return bool(
            await self._database.run.still_requested(self._database.pool, id=job_id, generation=generation)
        )

    async def reopen(self, job_id: str, *, settled_seconds: float) -> bool:
        """Let the letter take a word again, since the one that it took was lost with its workflow.

        settled_seconds: how long nothing must have happened to the job.
        """
        return bool(
            await self._database.run.reopen_letter(self._database.pool, id=job_id, settled_seconds=settled_seconds)
        )

    async def tell_again(self) -> int:
        """Queue the deaths of which nobody was told in time; returns how many."""
        return int(await self._database.run.tell_again(self._database.pool))

    async def is_alerted(self, job_id: str, generation: int) -> bool:
        """Whether somebody was told of this death already."""
        return bool(await self._database.run.is_alerted(self._database.pool, id=job_id, generation=generation))

    async def mark_alerted(self, job_id: str, generation: int) -> None:
        """Somebody was told of this death."""
        await self._database.run.mark_alerted(self._database.pool, id=job_id, generation=generation)

    async def report(self, tenant: str) -> Report:
        """Open letters by reason, agent and version, and all by state."""
        lines = self._database.run.report_dead_letters(self._database.pool, tenant=tenant)
        counts = self._database.run.count_dead_letters(self._database.pool, tenant=tenant)
        return Report(
            open=[ReportLine.model_validate(dict(row)) async for row in lines],
            by_state={row["state"]: row["count"] async for row in counts},
        )
