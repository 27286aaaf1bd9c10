"""What goes out about queues."""

from datetime import datetime

from pydantic import BaseModel

from agentjobs.domain.stages import Stage
from agentjobs.ledger.queues import QueueKind


class StageShown(BaseModel):
    """How many jobs are there, and since when the one that is there longest."""

    stage: Stage
    count: int
    oldest_at: datetime | None


class NextShown(BaseModel):
    """A step that waits for its next attempt, or whose attempt is due."""

    job_id: str
    step: str | None
    attempt: int
    category: str | None
    next_attempt_at: datetime | None


class OutboxShown(BaseModel):
    """What Temporal is not told of yet; `put_off` of it Temporal has not taken at least once."""

    topic: str
    count: int
    put_off: int
    oldest_at: datetime


class WorkerShown(BaseModel):
    """A worker that is there, with how many attempts it has in hand, and since when the oldest."""

    identity: str
    build: str | None
    started_at: datetime
    in_hand: int
    oldest_at: datetime | None


class TaskQueueShown(BaseModel):
    """A task queue as a relay last saw it, at `seen_at`. The backlog is Temporal's own estimate."""

    name: str
    kind: QueueKind
    backlog: int
    oldest_seconds: float
    pollers: int
    seen_at: datetime


class InstallationShown(BaseModel):
    """What is shared by all tenants."""

    outbox: list[OutboxShown]
    workers: list[WorkerShown]
    task_queues: list[TaskQueueShown]


class QueuesShown(BaseModel):
    """What is pending, and where. `next`: the first to go on; `installation`: for the first admin key only."""

    stages: list[StageShown]
    next: list[NextShown]
    installation: InstallationShown | None
    links: dict[str, str | None]
