"""What is pending, and where: jobs by stage; for the whole installation outbox, workers and task queues."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from agentjobs.domain.stages import Stage
from agentjobs.ledger.database import Database
from agentjobs.ledger.records import Record


class QueueKind(StrEnum):
    """What the tasks of a Temporal task queue are of."""

    WORKFLOW = "workflow"
    ACTIVITY = "activity"


class StageCount(Record):
    """How many jobs are there, and since when the one that is there longest."""

    stage: Stage
    count: int
    oldest_at: datetime | None


class OutboxCount(Record):
    """Rows of one topic; `put_off` of them Temporal did not take at least once."""

    topic: str
    count: int
    put_off: int
    oldest_at: datetime


class PresentWorker(Record):
    """A worker, with how many attempts it has in hand and since when the oldest."""

    identity: str
    build: str | None
    started_at: datetime
    in_hand: int
    oldest_at: datetime | None


class TaskQueueSeen(Record):
    """A task queue, as it was at `seen_at`. backlog: Temporal's estimate; pollers: workers that ask for tasks."""

    name: str
    kind: QueueKind
    backlog: int
    oldest_seconds: float
    pollers: int
    seen_at: datetime


class Queues:
    """Reads, and keeps what relays have seen of Temporal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stages(self, tenant: str, *, user: str | None) -> list[StageCount]:
        """One for each stage, also where no job is in it."""
        rows = self._database.run.count_stages(self._database.pool, tenant=tenant, user=user)
        found = {row["stage"]: row async for row in rows}
        return [
            StageCount.model_validate(dict(found.get(stage, {"stage": stage, "count": 0, "oldest_at": None})))
            for stage in Stage
        ]

    async def outbox(self) -> list[OutboxCount]:
        """Over all tenants, by topic."""
        rows = self._database.run.count_outbox(self._database.pool)
        return [OutboxCount.model_validate(dict(row)) async for row in rows]

    async def workers(self) -> list[PresentWorker]:
        """Those that have neither stopped nor been lost, in the order of their start."""
        rows = self._database.run.present_workers(self._database.pool)
        return [PresentWorker.model_validate(dict(row)) async for row in rows]

    async def note_task_queue(
        self, name: str, kind: QueueKind, *, backlog: int, oldest_seconds: float, pollers: int
    ) -> None:
        """Keep what Temporal says of a task queue at this moment."""
        await self._database.run.note_task_queue(
            self._database.pool,
            name=name,
            kind=kind,
            backlog=backlog,
            oldest_seconds=oldest_seconds,
            pollers=pollers,
        )

    async def task_queues(self) -> list[TaskQueueSeen]:
        """As they were seen last."""
        rows = self._database.run.list_task_queues(self._database.pool)
        return [TaskQueueSeen.model_validate(dict(row)) async for row in rows]
