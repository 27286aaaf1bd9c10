"""What the API answers about all dead letters together, as far as the commands read it."""

from collections.abc import Mapping

from pydantic import AwareDatetime

from agentjobs.commands.answers import Answer


class ReportRow(Answer):
    """Open dead letters of one kind."""

    reason: str
    count: int
    agent: str | None = None
    policy_version: str | None = None
    oldest_at: AwareDatetime | None = None


class Flow(Answer):
    """What happened within one hour or day."""

    at: AwareDatetime
    died: int = 0
    redriven: int = 0
    discarded: int = 0


class Recovery(Answer):
    """Seconds from a death to the success after it."""

    median_seconds: float | None = None
    p90_seconds: float | None = None


class Report(Answer):
    """All dead letters of the tenant, counted."""

    open: tuple[ReportRow, ...] = ()
    by_state: Mapping[str, int] = {}
    open_count: int = 0
    oldest_at: AwareDatetime | None = None
    ages: Mapping[str, int] = {}
    since: AwareDatetime | None = None
    unit: str | None = None
    flow: tuple[Flow, ...] = ()
    outcomes: Mapping[str, int] = {}
    recovery: Recovery = Recovery()
