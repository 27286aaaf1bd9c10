"""What a tenant may spend in a month, and has."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record


class MonthRecord(Record):
    """A tenant's current month (UTC): limits (None is no limit), what is spent, what is held back for calls in
    flight.
    """

    month: date
    monthly_tokens: int | None
    monthly_usd: Decimal | None
    tokens: int
    usd: Decimal
    tokens_reserved: int
    usd_reserved: Decimal


class Budgets:
    """Monthly budgets. What they hold back and settle is part of the effect protocol (queries/effects.sql)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, tenant: str) -> MonthRecord:
        """The month so far."""
        return MonthRecord.model_validate(
            dict(await self._database.run.read_budget(self._database.pool, tenant=tenant))
        )

    async def set(self, tenant: str, *, tokens: int | None, usd: Decimal | None, actor: str) -> None:
        """From now on the tenant's calls fit this, or are refused. What it has spent this month counts.

        (A call that ends in the very moment in which a tenant gets its first budget may go uncounted.)
        """
        run = self._database.run
        async with self._database.transaction() as connection:
            had_one = await run.lock_tenant(connection, tenant=tenant)
            await run.set_budget(connection, tenant=tenant, tokens=tokens, usd=usd)
            has_one = tokens is not None or usd is not None
            if has_one != had_one:
                await run.drop_months(connection, tenant=tenant)
            if has_one and not had_one:
                await run.join_attempts(connection, tenant=tenant)
                await run.open_month(connection, tenant=tenant)
            note = f"tokens {tokens}, usd {usd}"
            await run.audit_budget(connection, tenant=tenant, actor=actor, note=note)
