"""Whether anybody works for the task queue. Without a worker nothing moves, and Temporal tells nobody.

What is seen of the queue is kept in the ledger, where the API finds it: it has no Temporal to ask.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client

from agentjobs.ledger.comparing import FindingKind
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.queues import QueueKind
from agentjobs.outbox.described import RPC_TIMEOUT

log = structlog.get_logger()

STILL_SECONDS = 20.0
"""Work that has not moved for so long waits. A worker that is replaced is back sooner."""

TELL_SECONDS = 60.0
"""The log is told once in this time, whatever the number of relays and of jobs."""

POLL_LASTS = timedelta(seconds=75)
"""A long poll is renewed after 60 to 70 s: who was not heard of for longer does not poll."""

_TYPES = {
    QueueKind.WORKFLOW: TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    QueueKind.ACTIVITY: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
}


class TaskQueueWatch:
    """Keeps the finding `no_worker` for as long as it holds."""

    def __init__(
        self, ledger: Ledger, client: Client, task_queue: str, still_seconds: float = STILL_SECONDS
    ) -> None:
        self._ledger = ledger
        self._client = client
        self._task_queue = task_queue
        self._still_seconds = still_seconds

    async def run_once(self) -> int:
        """One look; returns 1 when work waits and there is no worker."""
        # Of workflow tasks: they are short, so that a worker that is busy polls all the same.
        workers = await self._seen(QueueKind.WORKFLOW)
        await self._seen(QueueKind.ACTIVITY)
        if workers or not await self._work_waits():
            await self._over()
            return 0
        detail = "work waits in the task queue, and no worker polls it"
        if await self._ledger.comparing.note(
            FindingKind.NO_WORKER, self._task_queue, detail, tell_seconds=TELL_SECONDS
        ):
            log.error("no_worker", task_queue=self._task_queue)
        return 1

    async def _over(self) -> None:
        if await self._ledger.comparing.clear(FindingKind.NO_WORKER, self._task_queue):
            log.info("no_worker_is_over", task_queue=self._task_queue)

    async def _work_waits(self) -> bool:
        return await self._ledger.comparing.work_waits(still_seconds=self._still_seconds)

    async def _seen(self, kind: QueueKind) -> int:
        """Keep what Temporal says of the queue; returns how many workers poll it."""
        answer = await self._described(kind)
        workers = await self._workers_of(answer.pollers)
        await self._ledger.queues.note_task_queue(
            self._task_queue,
            kind,
            backlog=max(0, answer.stats.approximate_backlog_count),
            oldest_seconds=max(0.0, answer.stats.approximate_backlog_age.ToTimedelta().total_seconds()),
            pollers=workers,
        )
        return workers

    async def _workers_of(self, pollers: Iterable[PollerInfo]) -> int:
        """Of the pollers that the server remembers (minutes longer than they live), those not known to be gone."""
        recent = {poller.identity for poller in pollers if _is_recent(poller)}
        return len(recent - await self._ledger.comparing.absent(recent)) if recent else 0

    async def _described(self, kind: QueueKind) -> DescribeTaskQueueResponse:
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=self._task_queue),
            task_queue_type=_TYPES[kind],
            report_stats=True,
        )
        return await self._client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)


def _is_recent(poller: PollerInfo) -> bool:
    # By this machine's clock; one that is wrong by minutes tells too much or too little, and concludes nothing.
    return datetime.now(UTC) - poller.last_access_time.ToDatetime(tzinfo=UTC) < POLL_LASTS
