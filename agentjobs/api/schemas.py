"""The wire's models. Responses are written out, so that no internal field gets out by accident."""

import unicodedata
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints, field_validator

from agentjobs.domain.job import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_PRIORITY,
    IDENTIFIER_PATTERN,
    MAX_DEADLINE_SECONDS,
    TEXT_LIMIT,
    Budget,
)
from agentjobs.domain.states import JobState
from agentjobs.ledger.identity import Role

Usd = Annotated[Decimal, PlainSerializer(lambda amount: f"{amount:.6f}", return_type=str)]
"""US dollars as a decimal text: JSON's numbers are binary fractions."""

ACTION_PATTERN = r"^[a-z_]{1,40}:[a-z_]{1,40}$"
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]
Note = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]


class Given(BaseModel):
    """What a client sends: fields that do not exist are refused, and a number is not a text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class JobInput(Given):
    """The request itself."""

    text: Annotated[str, Field(max_length=TEXT_LIMIT)]

    @field_validator("text")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not any(_is_visible(character) for character in text):
            raise ValueError("the text is blank: say what is wanted")
        return text


class GivenBudget(Given):
    """What the job may spend."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    usd: Annotated[Decimal, Field(gt=0, lt=1_000_000, decimal_places=6, strict=False)] | None = None

    def as_budget(self) -> Budget:
        """In the domain's words."""
        return Budget(tokens=self.tokens, usd=self.usd)


class NewJob(Given):
    """A job to be accepted."""

    agent: Identifier = "support-triage"
    input: JobInput
    deadline_seconds: Annotated[int, Field(ge=1, le=MAX_DEADLINE_SECONDS)] = DEFAULT_DEADLINE_SECONDS
    budget: GivenBudget | None = None
    priority: Annotated[int, Field(ge=1, le=5, description="1 is the most urgent.")] = DEFAULT_PRIORITY


class FailureShown(BaseModel):
    """Why the job waits or is dead. docs/failures.md says what each category asks of you."""

    category: str
    reason: str
    message: str
    step: str | None


class UsageShown(BaseModel):
    """What was certainly spent."""

    tokens_in: int
    tokens_out: int
    usd: Usd


class BudgetShown(BaseModel):
    """What may be spent; null is no limit."""

    tokens: int | None
    usd: Usd | None


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
    result: dict[str, Any] | None
    links: dict[str, str | None]


class JobPage(BaseModel):
    """Jobs, newest first."""

    items: list[JobShown]
    next_cursor: str | None


class AttemptShown(BaseModel):
    """One try of one step."""

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
    origin: str
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


class DeadLetterWithInput(DeadLetterShown):
    """With the original request: each reading is audited."""

    input: dict[str, Any]


class DeadLetterPage(BaseModel):
    """Dead letters, latest death first."""

    items: list[DeadLetterShown]
    next_cursor: str | None


class ReportLineShown(BaseModel):
    """Open letters of one reason, agent and policy version."""

    reason: str
    agent: str
    policy_version: str
    count: int
    oldest_at: datetime


class ReportShown(BaseModel):
    """The tenant's dead letters, counted."""

    open: list[ReportLineShown]
    by_state: dict[str, int]
    open_count: int


class RedriveOrder(Given):
    """Run the dead job again."""

    note: Note
    policy: Literal["original", "current"] = "original"


class DiscardOrder(Given):
    """Give the dead job up."""

    note: Note


class NewKey(Given):
    """A key to be made."""

    tenant: Identifier | None = None
    user: Identifier
    roles: Annotated[list[Annotated[Role, Field(strict=False)]], Field(min_length=1, max_length=3)]
    expires_in_seconds: Annotated[int, Field(ge=1, le=10 * 365 * 86400)] | None = None


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


class NewGrant(Given):
    """A permission to be given."""

    user: Identifier
    action: Annotated[str, StringConstraints(pattern=ACTION_PATTERN)]


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


def _is_visible(character: str) -> bool:
    # Spaces, controls, format characters (zero width), unassigned: a text of only these says nothing.
    return unicodedata.category(character)[0] not in "ZC"
