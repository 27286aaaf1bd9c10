"""Jobs in retry_wait: which, for what, until when."""

from __future__ import annotations

from datetime import datetime

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import JobRecord, Record

WORTH_SECONDS = 5.0
"""A wait of which less than this remains is over before anybody has looked at it."""


class Wait(Record):
    """One job's wait."""

    job_id: str
    step: str
    attempt: int
    category: str
    until: datetime


class WaitCount(Record):
    """How many wait for the same kind of trouble, and when the first of them goes on."""

    category: str
    count: int
    next_at: datetime


class Waits:
    """Reading what waits, and claiming what the Temporal UI is to show of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, batch: int) -> list[Wait]:
        """Waits that their workflows have not been told of; told once, to whoever asks first."""
        rows = self._database.run.claim_waits(self._database.pool, worth_seconds=WORTH_SECONDS, batch=batch)
        return [Wait.model_validate(dict(row)) async for row in rows]

    async def waiting(self, tenant: str, *, user: str | None, limit: int) -> list[JobRecord]:
        """Jobs in retry_wait, by the moment of their next attempt."""
        rows = self._database.run.list_waiting(self._database.pool, tenant=tenant, user=user, limit=limit)
        return [JobRecord.model_validate(dict(row)) async for row in rows]

    async def counts(self, tenant: str, *, user: str | None) -> list[WaitCount]:
        """All that wait, by category."""
        rows = self._database.run.count_waiting(self._database.pool, tenant=tenant, user=user)
        return [WaitCount.model_validate(dict(row)) async for row in rows]
