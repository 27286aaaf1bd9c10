"""The dead letters of a tenant, counted: what is open, what came and went, and what became of decisions."""

from datetime import datetime
from typing import Literal

from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record

WINDOW_HOURS = 24
WINDOW_HOURS_LIMIT = 90 * 24
HOURLY_UP_TO = 72
"""A longer window is told by the day: a chart of more than some 90 bars cannot be read."""


class ReportLine(Record):
    """Open letters of one reason, agent and policy version."""

    reason: str
    agent: str
    policy_version: str
    count: int
    oldest_at: datetime


class Ages(Record):
    """Open letters by how long they have been dead."""

    under_1_hour: int
    under_1_day: int
    under_7_days: int
    older: int


class Flow(Record):
    """What happened within one hour or day, UTC, that begins at `at`."""

    at: datetime
    died: int
    redriven: int
    discarded: int


class DecisionOutcomes(Record):
    """What became of what was decided in the window."""

    recovered: int
    died_again: int
    cancelled: int
    undecided: int
    discarded: int


class Recovery(Record):
    """Seconds from a death to the success that its redrive led to; None where none did."""

    median_seconds: float | None
    p90_seconds: float | None


class Report(Record):
    """Counted at one moment, `as_of`. A letter counts once, however often its job died; so does each death."""

    open: list[ReportLine]
    by_state: dict[str, int]
    open_count: int
    oldest_at: datetime | None
    ages: Ages
    as_of: datetime
    since: datetime
    unit: Literal["hour", "day"]
    flow: list[Flow]
    outcomes: DecisionOutcomes
    recovery: Recovery


async def counted(database: Database, tenant: str, *, window_hours: int) -> Report:
    """The report over a window of so many hours; the window begins with a full hour, or day."""
    found = await database.run.report_dead_letters(
        database.pool,
        tenant=tenant,
        window_hours=window_hours,
        unit="hour" if window_hours <= HOURLY_UP_TO else "day",
    )
    return Report.model_validate(found)
