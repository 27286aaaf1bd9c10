"""What is known of one run when it is over: plain data, so that the checker needs no stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.states import JobState
from tests.chaos.witnesses import Witnesses


class Answer(StrEnum):
    """What the client knows of a request that it sent."""

    OK = "ok"
    FAILED = "failed"
    """The server said no: certainly not done."""

    UNKNOWN = "unknown"
    """No answer, or a 5xx: done or not."""


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold."""

    invariant: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.where}: {self.what}"


@dataclass(frozen=True)
class Operation:
    """One request of a client, repeats included one by one."""

    what: str
    key: str
    """The idempotency key of a submission; the job's id otherwise."""

    answer: Answer
    status: int | None = None
    job_id: str | None = None
    asked_at: float = 0.0
    answered_at: float = 0.0
    """When the answer came, or was given up. Both of `time.time`."""

    by: str = ""
    """Whose it was, where that matters."""


class Row(BaseModel):
    """A row of the ledger: the columns that the checker reads."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Job(Row):
    id: str
    state: JobState
    generation: int
    event_seq: int
    tenant: str = "dev"
    key: str | None
    """The idempotency key that it was accepted under."""


class Effect(Row):
    key: str
    job_id: str
    step: str
    kind: str
    name: str
    state: str
    completed_at: datetime | None


class Attempt(Row):
    id: int
    job_id: str
    step: str
    run_id: str
    attempt: int
    outcome: str
    category: str | None = None
    started_at: datetime
    finished_at: datetime | None


class Ticket(Row):
    id: int
    job_id: str
    operation_key: str
    state: str


class Event(Row):
    job_id: str
    seq: int
    type: str
    step: str | None


class Approval(Row):
    job_id: str
    effect_key: str
    state: ApprovalState
    decided_by: str | None


class Letter(Row):
    id: str
    generation: int
    state: str
    reason: str
    message: str
    alerted_at: datetime | None


@dataclass(frozen=True)
class Workflow:
    """A job's workflow, as Temporal describes it."""

    status: str
    job_state: str | None
    """Its search attribute JobState."""


@dataclass(frozen=True)
class Evidence:
    """All that was collected of one run."""

    expected: Mapping[str, frozenset[JobState]] = field(default_factory=dict)
    """Where each job that was answered for may have ended."""

    operations: tuple[Operation, ...] = ()
    jobs: tuple[Job, ...] = ()
    effects: tuple[Effect, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    tickets: tuple[Ticket, ...] = ()
    events: tuple[Event, ...] = ()
    letters: tuple[Letter, ...] = ()
    approvals: tuple[Approval, ...] = ()
    asks_approval: str = ""
    """The tool whose calls need a person's word."""

    outbox: tuple[str, ...] = ()
    """Topics of the rows that are still to be delivered."""

    workflows: Mapping[str, Workflow] = field(default_factory=dict)
    """By job; a job without a workflow is not in it."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """What must hold no content and no secret, by where it stands: logs, histories, search attributes."""

    planted: Mapping[str, str] = field(default_factory=dict)
    """What must not be found in them, by what it is."""

    witnesses: Witnesses = field(default_factory=Witnesses)
    frozen: bool = False
    """A worker was stopped and woke up again: its call in flight may have been made once more meanwhile."""

    def but(self, **changes: object) -> "Evidence":
        """The same with some of it changed."""
        return replace(self, **changes)  # type: ignore[arg-type]
