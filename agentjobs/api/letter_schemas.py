"""What goes out about one dead letter in full, and about all of them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agentjobs.api.schemas import DeadLetterShown, EffectShown, SpentShown, Usd


class AttemptCountShown(BaseModel):
    """Attempts that ended alike. `wait_seconds`: how long the waits after them were, together."""

    outcome: str
    category: str | None
    attempts: int
    wait_seconds: float
    tokens_in: int
    tokens_out: int
    usd: Usd


class DeathShown(BaseModel):
    """One death of the job. `resolution`: what a person decided. `outcome`: what became of a redrive."""

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


class InputChangeShown(BaseModel):
    """What the request was before it was corrected at this death."""

    generation: int
    old_input: dict[str, Any]
    changed_by: str
    changed_at: datetime
    note: str


class DeadLetterWithInput(DeadLetterShown):
    """With the request, each reading of which is audited, and with all that was tried and spent."""

    input: dict[str, Any]
    input_changes: list[InputChangeShown]
    spent: list[SpentShown]
    tried: list[AttemptCountShown]
    deaths: list[DeathShown]
    effects: list[EffectShown]
    """Of an ended job: what became of each effect."""


class ReportLineShown(BaseModel):
    """Open letters of one reason, agent and policy version."""

    reason: str
    agent: str
    policy_version: str
    count: int
    oldest_at: datetime


class AgesShown(BaseModel):
    """Open letters by how long they have been dead."""

    under_1_hour: int
    under_1_day: int
    under_7_days: int
    older: int


class FlowShown(BaseModel):
    """What happened within one hour or day (UTC) that begins at `at`."""

    at: datetime
    died: int
    redriven: int
    discarded: int


class OutcomesShown(BaseModel):
    """What became of the decisions of the window."""

    recovered: int
    died_again: int
    cancelled: int
    undecided: int
    discarded: int


class RecoveryShown(BaseModel):
    """From the death to the success, of those redriven in the window that recovered; null where none did."""

    median_seconds: float | None
    p90_seconds: float | None


class ReportShown(BaseModel):
    """The tenant's dead letters, counted at one moment. The window reaches from `since` (a full hour or day) to
    `as_of`; what is open is counted whole.
    """

    open: list[ReportLineShown]
    by_state: dict[str, int]
    open_count: int
    oldest_at: datetime | None
    ages: AgesShown
    as_of: datetime
    since: datetime
    unit: str
    flow: list[FlowShown]
    outcomes: OutcomesShown
    recovery: RecoveryShown
