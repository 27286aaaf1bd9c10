"""What the ledger wants Temporal to do: rows claimed by lock in the relay's transaction."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from agentjobs.domain.states import JobState
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record

CHANNEL = "agentjobs_outbox"
"""NOTIFY wakes the relay; the payload is empty, since equal notifies collapse and one may be lost."""


class Topic(StrEnum):
    """What a row asks for."""

    START_JOB = "start_job"
    CANCEL_JOB = "cancel_job"
    REDRIVE_JOB = "redrive_job"
    DISCARD_JOB = "discard_job"
    APPROVAL_DECIDED = "approval_decided"
    JOB_DIED = "job_died"
    APPROVAL_REQUESTED = "approval_requested"


class OutboxRow(Record):
    """A row with what the relay needs to know of its job."""

    id: int
    topic: Topic
    job_id: str
    tenant: str
    payload: dict[str, Any]
    attempts: int
    agent: str
    policy_version: str
    deadline_at: datetime
    priority: int
    state: JobState
    generation: int
    budget_steps: int | None
    cancelling: bool
    """Somebody asked to cancel the job, and was told that it will be."""

    created_at: datetime
    traceparent: str | None
    """Of the request that ordered this, where it is another one than the job's own."""

    trace_id: str
    trace_parent: str | None
    trace_sampled: bool | None


class Outbox:
    """Claim, settle, postpone. The claims hold as long as the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_starts(self, connection: Connection, batch: int) -> list[OutboxRow]:
        """Jobs to start, fairly over tenants and under their caps; nothing while another relay starts."""
        if not await self._database.run.only_one_starter(connection):
            return []
        rows = self._database.run.claim_starts(connection, batch=batch)
        return [
            OutboxRow.model_validate({**dict(row), "topic": Topic.START_JOB, "payload": {}}) async for row in rows
        ]

    async def claim_commands(self, connection: Connection, batch: int) -> list[OutboxRow]:
        """Everything else, oldest first."""
        rows = self._database.run.claim_commands(connection, batch=batch)
        return [OutboxRow.model_validate(dict(row)) async for row in rows]

    async def claim_desk_words(self, connection: Connection, batch: int) -> list[OutboxRow]:
        """What desks are to hear of, deaths and requests for approvals, oldest first."""
        rows = self._database.run.claim_desk_words(connection, batch=batch)
        return [OutboxRow.model_validate(dict(row)) async for row in rows]

    async def mark_started(self, connection: Connection, ids: list[int]) -> None:
        """The workflows exist."""
        await self._database.run.mark_started(connection, ids=ids)

    async def mark_delivered(self, connection: Connection, ids: list[int]) -> None:
        """The commands were taken."""
        await self._database.run.mark_delivered(connection, ids=ids)

    async def postpone(self, connection: Connection, row_id: int, error: str, wait_seconds: float) -> None:
        """Try this row again later. `error` is the kind of failure, never its content."""
        await self._database.run.postpone(connection, id=row_id, error=error, wait_seconds=wait_seconds)

    async def backlog(self) -> tuple[int, float]:
        """(rows waiting, age of the oldest in seconds)."""
        row = await self._database.run.backlog(self._database.pool)
        return row["rows"], row["oldest_seconds"] or 0.0
