"""What the API answers, as far as the commands read it. Fields unknown here are kept for --json."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, JsonValue

from agentjobs.domain.states import FINAL, JobState

# A field that an older or newer API leaves out is empty, not an error; `id` and `state` always are there.
Count = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value)]
Money = Annotated[Decimal, BeforeValidator(lambda value: 0 if value is None else value)]


class Answer(BaseModel):
    """One JSON document of the API."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def document(self) -> JsonValue:
        """The document as the API gave it."""
        document: JsonValue = self.model_dump(mode="json", exclude_unset=True)
        return document


class Page(Answer):
    """One page of a list."""

    items: list[dict[str, JsonValue]]
    next_cursor: str | None = None


class Failure(Answer):
    """Why a job waits or is dead."""

    category: str
    reason: str | None = None
    message: str | None = None
    step: str | None = None


class Usage(Answer):
    """What a job has used."""

    tokens_in: Count = 0
    tokens_out: Count = 0
    usd: str | None = None
    tokens_reserved: Count = 0
    usd_reserved: Money = Decimal(0)


class Budget(Answer):
    """What a job may use."""

    tokens: int | None = None
    usd: str | None = None
    steps: int | None = None


class DoneEffect(Answer):
    """One thing that the outside noticed."""

    step: str
    tool: str | None = None
    state: str | None = None
    outcome: str | None = None
    because: str | None = None
    receipt: JsonValue = None


class Result(Answer):
    """What a job came to."""

    answer: str | None = None
    plan: JsonValue = None
    effects: list[DoneEffect] = []


class Job(Answer):
    """A job as its owner sees it."""

    id: str
    state: str
    agent: str | None = None
    policy_version: str | None = None
    priority: int | None = None
    step: str | None = None
    attempt: int | None = None
    next_attempt_at: AwareDatetime | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    budget: Budget | None = None
    generation: int | None = None
    cancel_requested_at: AwareDatetime | None = None
    deadline_at: AwareDatetime | None = None
    created_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    finalized_at: AwareDatetime | None = None
    trace_id: str | None = None
    result: Result | None = None
    links: Mapping[str, str | None] = {}

    @property
    def has_succeeded(self) -> bool:
        """It did what was asked."""
        return self.state == JobState.SUCCEEDED

    @property
    def has_ended(self) -> bool:
        """Nothing more happens of itself: final, or dead until a person acts."""
        return self.state in FINAL or self.state == JobState.DEAD


class WaitCount(Answer):
    """How many jobs wait for one kind of trouble."""

    category: str
    count: int
    next_at: AwareDatetime


class Waiting(Answer):
    """Jobs that wait for their next attempt; the counts are of all, not only of those listed."""

    items: list[Job]
    counts: list[WaitCount] = []
    total: int = 0
    links: Mapping[str, str | None] = {}


class Amount(Answer):
    """Tokens and US dollars; None is no limit where it says what may be spent."""

    tokens: int | None = None
    usd: str | None = None


class Month(Answer):
    """The tenant's month: what it may spend, has spent, and holds back."""

    month: str
    limits: Amount
    spent: Amount
    held_back: Amount


class InUse(Answer):
    """One quota; a limit of None is none."""

    limit: int | None = None
    in_use: int


class Running(InUse):
    """The tenant's running cap."""

    limit: int


class OwnLimits(Answer):
    """What the tenant has of its own: None is as the installation has it, 0 is no limit."""

    in_flight: int | None = None
    per_minute: int | None = None
    queue_length: int | None = None


class Quota(Answer):
    """What a tenant and one of its users may have at once, and have."""

    tenant: str
    user: str
    in_flight: InUse
    per_minute: InUse
    queue_length: InUse
    running: Running
    own: OwnLimits


class Attempt(Answer):
    """One try of one step."""

    step: str
    attempt: int
    outcome: str
    worker: str | None = None
    category: str | None = None
    message: str | None = None
    wait_seconds: float | None = None
    model: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    usd: Money = Decimal(0)
    tokens_reserved: Count = 0
    usd_reserved: Money = Decimal(0)
    trace_id: str | None = None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None


class Spent(Answer):
    """What the attempts of one step at one model have cost, and hold back."""

    step: str
    model: str | None = None
    attempts: Count = 0
    tokens_in: Count = 0
    tokens_out: Count = 0
    usd: Money = Decimal(0)
    tokens_reserved: Count = 0
    usd_reserved: Money = Decimal(0)


class InputText(Answer):
    """What the job's owner wrote."""

    text: str


class InputChange(Answer):
    """What the request was before it was corrected."""

    generation: int
    old_input: InputText
    changed_by: str | None = None
    changed_at: AwareDatetime | None = None
    note: str | None = None


class AttemptCount(Answer):
    """Attempts that ended alike."""

    outcome: str
    category: str | None = None
    attempts: Count = 0
    wait_seconds: float = 0


class Death(Answer):
    """One death of the job, and what became of it."""

    generation: int
    reason: str
    step: str | None = None
    died_at: AwareDatetime | None = None
    resolution: str | None = None
    resolved_by: str | None = None
    note: str | None = None
    outcome: str | None = None


class DeadLetter(Answer):
    """A job that cannot go on by itself."""

    id: str
    state: str
    generation: int | None = None
    category: str | None = None
    reason: str | None = None
    message: str | None = None
    step: str | None = None
    agent: str | None = None
    policy_version: str | None = None
    worker: str | None = None
    worker_build: str | None = None
    origin: str | None = None
    submitted_by: str | None = None
    review_id: str | None = None
    attempts: JsonValue = None
    effects_done: JsonValue = None
    effects_in_doubt: JsonValue = None
    died_at: AwareDatetime | None = None
    alerted_at: AwareDatetime | None = None
    resolved_at: AwareDatetime | None = None
    resolved_by: str | None = None
    note: str | None = None
    input: InputText | None = None
    input_changes: list[InputChange] = []
    spent: list[Spent] = []
    tried: list[AttemptCount] = []
    deaths: list[Death] = []
    effects: list[DoneEffect] = []
    links: Mapping[str, str | None] = {}


class AuditEntry(Answer):
    """One deed that is on record."""

    id: str
    at: AwareDatetime | None = None
    actor: str | None = None
    action: str | None = None
    target: str | None = None
    note: str | None = None
    details: Mapping[str, JsonValue] = {}


class Key(Answer):
    """An API key; `key` itself only in the answer that makes it."""

    id: str
    key: str | None = None
    tenant: str | None = None
    user: str | None = None
    roles: list[str] = []
    created_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None


class Grant(Answer):
    """That a user's jobs may do something."""

    user: str
    action: str
    tenant: str | None = None
    granted_by: str | None = None
    created_at: AwareDatetime | None = None
