"""A tenant at one glance: its jobs by state, what its models cost this month; and all tenants."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from agentjobs.domain.states import JobState
from agentjobs.ledger.budgets import MonthRecord
from agentjobs.ledger.database import Database
from agentjobs.ledger.quotas import OwnLimits
from agentjobs.ledger.records import Record

COUNTED_AT_MOST = 1_000
"""Of each state. Nobody decides differently for 1,001; a count of all would read the whole table."""


class StateCount(Record):
    """How many jobs are in a state (COUNTED_AT_MOST may mean more), and when the oldest of them was accepted."""

    state: JobState
    count: int
    oldest_at: datetime | None

    @property
    def may_be_more(self) -> bool:
        """Whether counting ended before the jobs did."""
        return self.count >= COUNTED_AT_MOST


class ModelUsage(Record):
    """What the calls of one agent to one model have cost this month (UTC), and hold back, in US dollars."""

    agent: str
    model: str
    calls: int
    jobs: int
    tokens_in: int
    tokens_out: int
    usd: Decimal
    tokens_reserved: int
    usd_reserved: Decimal


class TenantMonth(MonthRecord, OwnLimits):
    """A tenant's month and limits, and how many of its jobs wait for their start or are under way."""

    tenant: str
    queued: int
    running: int


class Overview:
    """Reads only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_state(self, tenant: str, *, user: str | None) -> list[StateCount]:
        """One for each state there is, also where no job is in it."""
        rows = self._database.run.count_jobs_by_state(
            self._database.pool,
            tenant=tenant,
            user=user,
            states=[state.value for state in JobState],
            most=COUNTED_AT_MOST,
        )
        return [StateCount.model_validate(dict(row)) async for row in rows]

    async def usage(self, tenant: str) -> list[ModelUsage]:
        """This month, by agent and model, the dearest first."""
        rows = self._database.run.usage_of_month(self._database.pool, tenant=tenant)
        return [ModelUsage.model_validate(dict(row)) async for row in rows]

    async def tenants(self, *, limit: int) -> list[TenantMonth]:
        """So many of all tenants, who has spent the most money first: for nobody but the operator."""
        rows = self._database.run.tenants_this_month(self._database.pool, limit=limit)
        return [TenantMonth.model_validate(dict(row)) async for row in rows]
