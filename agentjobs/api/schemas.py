"""What goes out. Responses are written out, so that no internal field gets out by accident."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, PlainSerializer

from agentjobs.domain.effects import EffectOutcome, EffectState, StaysBecause
from agentjobs.domain.states import JobState
from agentjobs.ledger.identity import Role

Usd = Annotated[Decimal, PlainSerializer(lambda amount: f"{amount:.6f}", return_type=str)]
"""US dollars as a decimal text: JSON's numbers are binary fractions."""


class FailureShown(BaseModel):
    """Why the job waits or is dead. docs/failures.md says what each category asks of you."""

    category: str
    reason: str
    message: str
    step: str | None


class UsageShown(BaseModel):
    """What was certainly spent, and (reserved) what is held back for calls in flight or of unknown cost."""

    tokens_in: int
    tokens_out: int
    usd: Usd
    tokens_reserved: int
    usd_reserved: Usd


class BudgetShown(BaseModel):
    """What may be spent; null is no limit beside the agent's own."""

    tokens: int | None
    usd: Usd | None
    steps: int | None


class EffectShown(BaseModel):
    """One thing that the outside can notice: a ticket, for instance. `outcome` says what is true of it now that
    the job has ended, and `because` why it stays (jobs that ended before this was told have neither).
    """

    step: str
    tool: str
    state: EffectState
    outcome: EffectOutcome | None = None
    because: StaysBecause | None = None
    receipt: dict[str, Any] | None


class ResultShown(BaseModel):
    """What a job came to, put together from the receipts of its steps."""

    answer: str | None = None
    plan: dict[str, Any] | None = None
    effects: list[EffectShown] = []


class JobShown(BaseModel):
    """Where a job stands."""

    id: str
    state: JobState
    agent: str
    policy_version: str
    priority: int
    step: str | None
    attempt: int
    next_attempt_at: datetime | None
    failure: FailureShown | None
    usage: UsageShown
    budget: BudgetShown
    generation: int
    cancel_requested_at: datetime | None
    deadline_at: datetime
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finalized_at: datetime | None
    trace_id: str
    result: ResultShown | None
    content_removed_at: datetime | None = None
    """Since then the result is empty (docs/retention.md)."""

    links: dict[str, str | None]


class JobPage(BaseModel):
    """Jobs, newest first."""

    items: list[JobShown]
    next_cursor: str | None


class WaitCountShown(BaseModel):
    """How many jobs wait for one kind of trouble, and when the first of them goes on."""

    category: str
    count: int
    next_at: datetime


class WaitingShown(BaseModel):
    """Jobs that wait for their next attempt, by its moment; the counts are of all, not only of those shown."""

    items: list[JobShown]
    counts: list[WaitCountShown]
    total: int
    links: dict[str, str | None]


class AmountShown(BaseModel):
    """Tokens in both directions, and money."""

    tokens: int
    usd: Usd


class LimitsShown(BaseModel):
    """What may be spent; null is no limit."""

    tokens: int | None
    usd: Usd | None


class MonthShown(BaseModel):
    """The tenant's current month, in UTC: what it may spend, has spent, and holds back."""

    month: str
    limits: LimitsShown
    spent: AmountShown
    held_back: AmountShown


class QuotaUseShown(BaseModel):
    """One quota; a limit of null is none."""

    limit: int | None
    in_use: int


class RunningShown(BaseModel):
    """The tenant's running cap: above it nothing is refused, but waits for its start."""

    limit: int
    in_use: int


class OwnLimitsShown(BaseModel):
    """What the tenant has of its own: null is as the installation has it, 0 is no limit."""

    in_flight: int | None
    per_minute: int | None
    queue_length: int | None


class QuotaShown(BaseModel):
    """What the user and the tenant may have at once, and have."""

    tenant: str
    user: str
    in_flight: QuotaUseShown
    per_minute: QuotaUseShown
    queue_length: QuotaUseShown
    running: RunningShown
    own: OwnLimitsShown


class AttemptShown(BaseModel):
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
    usd: Usd
    tokens_reserved: int
    usd_reserved: Usd
    trace_id: str
    started_at: datetime
    finished_at: datetime | None


class AttemptList(BaseModel):
    """All attempts, in the order in which they began."""

    items: list[AttemptShown]


class DeadLetterShown(BaseModel):
    """A job that cannot go on, and what a person needs to decide."""

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
    links: dict[str, str | None]


class SpentShown(BaseModel):
    """What the attempts of one step at one model have cost, and (reserved) hold back."""

    step: str
    model: str | None
    attempts: int
    tokens_in: int
    tokens_out: int
    usd: Usd
    tokens_reserved: int
    usd_reserved: Usd


class DeadLetterPage(BaseModel):
    """Dead letters, latest death first."""

    items: list[DeadLetterShown]
    next_cursor: str | None


class KeyShown(BaseModel):
    """A key without its secret."""

    id: str
    tenant: str
    user: str
    roles: list[Role]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyMade(KeyShown):
    """The only answer that shows the key itself."""

    key: str


class KeyList(BaseModel):
    """All keys of the tenant."""

    items: list[KeyShown]


class GrantShown(BaseModel):
    """A permission of one user for one action."""

    tenant: str
    user: str
    action: str
    granted_by: str
    created_at: datetime


class GrantList(BaseModel):
    """Permissions."""

    items: list[GrantShown]


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
