"""Quotas of tenants: their own limits, and what is in use. They are kept by the acceptance of a job (jobs.py)."""

from __future__ import annotations

import asyncpg

from agentjobs.domain.quotas import LOOK_AGAIN_SECONDS, Limits, Quota, QuotaExceeded, QuotaUse
from agentjobs.ledger.database import Database
from agentjobs.ledger.identity import Caller
from agentjobs.ledger.records import Record


class OwnLimits(Record):
    """What a tenant has of its own. None: as the installation has it; 0: no limit."""

    in_flight: int | None
    per_minute: int | None
    queue_length: int | None
    running_cap: int
    """How many of its jobs are started and not over; the relay keeps to it."""


class QuotaRecord(OwnLimits):
    """A tenant's quotas, as one of its users meets them."""

    tenant: str
    running: int
    quotas: tuple[QuotaUse, ...]


class Quotas:
    """The quotas of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, tenant: str, user: str, installation: Limits) -> QuotaRecord | None:
        """What is in use, and of what; None where there is no such tenant."""
        row = await self._database.run.read_quota(
            self._database.pool, tenant=tenant, user=user, **installation.model_dump()
        )
        return None if row is None else QuotaRecord.model_validate(dict(row))

    async def set(self, tenant: str, limits: OwnLimits, *, by: Caller) -> bool:
        """From the next acceptance on these hold; False where there is no such tenant."""
        done: bool = await self._database.run.set_quota(
            self._database.pool, tenant=tenant, by_tenant=by.tenant, by_user=by.user, **limits.model_dump()
        )
        return done


def as_refusal(row: asyncpg.Record) -> QuotaExceeded:
    """What `admit` (migration 0018) has refused."""
    use = QuotaUse(quota=Quota(row["refused"]), limit=row["at_most"], in_use=row["in_use"])
    return QuotaExceeded(use, row["wait_seconds"] or LOOK_AGAIN_SECONDS)
