"""Dead letters: read, and a person's word on them recorded."""

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from agentjobs.ledger.corrections import Correction, Corrections, InputChange
from agentjobs.ledger.database import Database, Executor
from agentjobs.ledger.letter_report import WINDOW_HOURS, Report, counted
from agentjobs.ledger.records import DeadLetterRecord, Record

Action = Literal["redrive", "discard"]


class NotOpen(Exception):
    """The letter takes no word now: it is being redriven or discarded, or was already."""

    def __init__(self, state: str) -> None:
        super().__init__(f"the letter is {state}")
        self.state = state


class AttemptCount(Record):
    """Attempts that ended alike, the waits after them (in seconds, together), and what they cost."""

    outcome: str
    category: str | None
    attempts: int
    wait_seconds: float
    tokens_in: int
    tokens_out: int
    usd: Decimal


class DeathRecord(Record):
    """One death of a job, what a person decided, and what became of a redrive."""

    generation: int
    category: str
    reason: str
    step: str | None
    policy_version: str
    worker: str
    worker_build: str | None
    died_at: datetime
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    note: str | None
    outcome: str | None
    outcome_at: datetime | None


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
        self._corrections = Corrections(database)

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

    async def tried(self, tenant: str, job_id: str) -> list[AttemptCount]:
        """How the attempts of a letter's job ended, the most frequent first."""
        rows = self._database.run.attempts_of_letter(self._database.pool, tenant=tenant, id=job_id)
        return [AttemptCount.model_validate(dict(row)) async for row in rows]

    async def deaths(self, tenant: str, job_id: str) -> list[DeathRecord]:
        """Every death of a letter's job, the first one first."""
        rows = self._database.run.deaths_of_letter(self._database.pool, tenant=tenant, id=job_id)
        return [DeathRecord.model_validate(dict(row)) async for row in rows]

    async def effects_at_end(self, tenant: str, job_id: str) -> list[dict[str, Any]]:
        """What became of each effect of a job that has ended; empty until then."""
        effects: list[dict[str, Any]] | None = await self._database.run.effects_at_end(
            self._database.pool, tenant=tenant, id=job_id
        )
        return effects or []

    async def request(
        self,
        action: Action,
        tenant: str,
        job_id: str,
        *,
        actor: str,
        note: str,
        payload: dict[str, Any],
        correction: Correction | None = None,
        traceparent: str | None = None,
    ) -> bool:
        """Record a person's word and queue it; with a redrive, change the job first as `correction` says.
        traceparent: of the request that gives the word.

        False for an unknown letter. Raises NotOpen, BeingUndone or NotRaised, and has then changed nothing.
        """
        word = partial(
            self.ask,
            action=action,
            tenant=tenant,
            job_id=job_id,
            actor=actor,
            note=note,
            payload=payload,
            traceparent=traceparent,
        )
        if correction is None or correction.is_empty:
            return await word(self._database.pool)
        async with self._database.transaction() as connection:
            before = await self._corrections.lock(connection, tenant, job_id)
            if before is None:
                return False
            if before["state"] != "open":
                raise NotOpen(before["state"])
            again = bool(payload.get("again"))
            await self._corrections.apply(
                connection, job_id, correction, before, actor=actor, note=note, again=again
            )
            return await word(connection)

    async def ask(
        self,
        executor: Executor,
        action: Action,
        tenant: str,
        job_id: str,
        *,
        actor: str,
        note: str,
        payload: dict[str, Any],
        traceparent: str | None = None,
    ) -> bool:
        """The word alone, as part of the caller's own transaction. False for an unknown letter. Raises NotOpen."""
        row = await self._database.run.request_resolution(
            executor,
            action=action,
            tenant=tenant,
            id=job_id,
            actor=actor,
            note=note,
            payload=payload,
            traceparent=traceparent,
        )
        if row is None:
            return False
        if not row["accepted"]:
            raise NotOpen(row["state_before"])
        return True

    async def input_corrected(self, job_id: str, generation: int) -> bool:
        """Whether a job that died so often goes on with another input than it died with."""
        return bool(
            await self._database.run.input_corrected(self._database.pool, id=job_id, generation=generation)
        )

    async def input_changes(self, tenant: str, job_id: str) -> list[InputChange]:
        """The earlier inputs of a letter's job, oldest first: content, for who may read its input."""
        return await self._corrections.of_letter(tenant, job_id)

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

    async def report(self, tenant: str, *, window_hours: int = WINDOW_HOURS) -> Report:
        """What is open, what came and went in the window, and what became of decisions: at one moment."""
        return await counted(self._database, tenant, window_hours=window_hours)
