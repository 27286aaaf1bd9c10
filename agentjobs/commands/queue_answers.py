"""What the API answers about queues, as far as the commands show it."""

from pydantic import AwareDatetime

from agentjobs.commands.answers import Answer, Count


class StageCount(Answer):
    """How many jobs are in one stage, and since when the one that is there longest."""

    stage: str
    count: Count = 0
    oldest_at: AwareDatetime | None = None


class Following(Answer):
    """A step that waits for its next attempt."""

    job_id: str
    step: str | None = None
    attempt: Count = 0
    category: str | None = None
    next_attempt_at: AwareDatetime | None = None


class OutboxCount(Answer):
    """What Temporal is not told of yet."""

    topic: str
    count: Count = 0
    put_off: Count = 0
    oldest_at: AwareDatetime | None = None


class PresentWorker(Answer):
    """A worker, and what it has in hand."""

    identity: str
    build: str | None = None
    in_hand: Count = 0
    started_at: AwareDatetime | None = None
    oldest_at: AwareDatetime | None = None


class TaskQueue(Answer):
    """A task queue of Temporal as it was at `seen_at`."""

    name: str
    kind: str
    backlog: Count = 0
    oldest_seconds: float = 0
    pollers: Count = 0
    seen_at: AwareDatetime | None = None


class Installation(Answer):
    """What all tenants share."""

    outbox: tuple[OutboxCount, ...] = ()
    workers: tuple[PresentWorker, ...] = ()
    task_queues: tuple[TaskQueue, ...] = ()


class Queues(Answer):
    """What is pending, and where; `installation` only for the first admin key."""

    stages: tuple[StageCount, ...] = ()
    next: tuple[Following, ...] = ()
    installation: Installation | None = None
