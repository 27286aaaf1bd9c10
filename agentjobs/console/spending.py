"""A month's budget, and what may be had at once, as bars."""

from dataclasses import dataclass
from decimal import Decimal

from agentjobs.api.schemas import MonthShown, QuotaShown, QuotaUseShown, RunningShown
from agentjobs.console.charts import share
from agentjobs.console.words import grouped, usd


@dataclass(frozen=True)
class SpendingBar:
    """One limit. The widths are hundredths of it; without a limit there is no bar to fill."""

    name: str
    spent: str
    held_back: str | None
    limit: str | None
    spent_width: float
    held_back_width: float


def bars_of(month: MonthShown) -> tuple[SpendingBar, SpendingBar]:
    """Tokens and money."""
    return (
        _tokens(month.spent.tokens, month.held_back.tokens, month.limits.tokens),
        _money(month.spent.usd, month.held_back.usd, month.limits.usd),
    )


def quota_bars(quotas: QuotaShown) -> tuple[SpendingBar, ...]:
    """The user's own quotas, then the tenant's."""
    return (
        _quota("Your jobs that are not over", quotas.in_flight),
        _quota("Your submissions within a minute", quotas.per_minute),
        _quota("Jobs of the tenant that wait for their start", quotas.queue_length),
        _quota("Jobs of the tenant that are started and not over", quotas.running),
    )


def _quota(name: str, use: QuotaUseShown | RunningShown) -> SpendingBar:
    return SpendingBar(
        name=name,
        spent=grouped(use.in_use),
        held_back=None,
        limit=None if use.limit is None else grouped(use.limit),
        spent_width=share(use.in_use, use.limit or 0),
        held_back_width=0.0,
    )


def _tokens(spent: int, held_back: int, limit: int | None) -> SpendingBar:
    return SpendingBar(
        name="Tokens",
        spent=grouped(spent),
        held_back=grouped(held_back) if held_back else None,
        limit=None if limit is None else grouped(limit),
        spent_width=share(spent, limit or 0),
        held_back_width=share(held_back, limit or 0),
    )


def _money(spent: Decimal, held_back: Decimal, limit: Decimal | None) -> SpendingBar:
    return SpendingBar(
        name="Money",
        spent=usd(spent),
        held_back=usd(held_back) if held_back else None,
        limit=None if limit is None else usd(limit),
        spent_width=share(float(spent), float(limit or 0)),
        held_back_width=share(float(held_back), float(limit or 0)),
    )
