"""What the ledger returns: rows as typed values."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Failure
from agentjobs.domain.states import JobState


class Record(BaseModel):
    """A row, or the part of it that its reader needs; columns nobody asked for are left behind."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class JobRecord(Record):
    """A job as its owner may see it, without its input."""

    id: str
    tenant: str
    user: str
    agent: str
    policy_version: str
    priority: int
    state: JobState
    step: str | None
    attempt: int
    next_attempt_at: datetime | None
    failure: Failure | None
    generation: int
    result: dict[str, Any] | None
    budget_tokens: int | None
    budget_usd: Decimal | None
    budget_steps: int | None
    tokens_in: int
    tokens_out: int
    usd: Decimal
    tokens_reserved: int
    usd_reserved: Decimal
    cancel_requested_at: datetime | None
    deadline_at: datetime
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finalized_at: datetime | None
    trace_id: str
    content_removed_at: datetime | None = None
    """Since then its result is empty: it expired, or was erased."""

    erased_at: datetime | None = None
    """Since then nobody is shown any of it."""

    @property
    def usage(self) -> Usage:
        """What was certainly spent."""
        return Usage(tokens_in=self.tokens_in, tokens_out=self.tokens_out, usd=self.usd)


class AttemptRecord(Record):
    """One try of one step."""

    id: int
    step: str
    run_id: str
    attempt: int
    worker: str
    outcome: str
    category: str | None
    message: str | None
    wait_seconds: float | None
    next_attempt_at: datetime | None
    model: str | None
    tokens_in: int
    tokens_out: int
    usd: Decimal
    tokens_reserved: int
    usd_reserved: Decimal
    trace_id: str
    started_at: datetime
    finished_at: datetime | None


class EffectRecord(Record):
    """An effect with its receipt, if it is completed."""

    key: str
    step: str
    kind: EffectKind
    name: str
    effect_class: EffectClass
    state: EffectState
    in_doubt: bool
    begun_count: int
    generation: int
    sent_at: datetime
    since_sent: timedelta
    result: dict[str, Any] | None
    begun_at: datetime
    completed_at: datetime | None


class EventRecord(Record):
    """One event of a job; `seq` counts from 1 without gaps."""

    seq: int
    type: str
    data: dict[str, Any]
    at: datetime


class DeadLetterRecord(Record):
    """A dead letter, without the job's input."""

    id: str
    generation: int
    state: str
    category: str
    reason: str
    message: str
    step: str | None
    agent: str
    policy_version: str
    worker: str
    worker_build: str | None
    origin: str
    submitted_by: str | None
    review_id: str
    attempts: int
    effects_done: list[dict[str, Any]]
    effects_in_doubt: list[dict[str, Any]]
    died_at: datetime
    alerted_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    note: str | None
    erased_at: datetime | None = None


class KeyRecord(Record):
    """An API key without its secret."""

    id: str
    tenant: str
    user: str
    roles: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class GrantRecord(Record):
    """A permission of one user for one action."""

    tenant: str
    user: str
    action: str
    granted_by: str
    created_at: datetime
