"""Takeover: the work of a killed worker is handed on at once, without waiting for a heartbeat timeout.

Its death is known by its database session, what it held by the attempts and by Temporal. Each of its activities is
reported as failed on its behalf, to be tried again now. Heartbeats stay as the second line.
"""

import asyncio
from datetime import UTC, timedelta

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.domain import keys
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.workers import LostWorker
from agentjobs.outbox.lost_spans import attempt_lost
from agentjobs.outbox.measures import RelayMeasures
from agentjobs.tracing.spans import is_on

log = structlog.get_logger()

LOOK_SECONDS = 0.2
"""Twice missing in a row means lost: a session that was only cut off is back sooner (presence.py)."""

AT_ONCE = 20
"""Jobs handed on at the same time: Temporal's front end is not to be flooded by one death."""

RPC_TIMEOUT = timedelta(seconds=5)


_IN_HAND = frozenset(
    {
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
    }
)


class Takeover:
    """Watches the workers of one installation. Several may watch: all that they do may be done twice."""

    def __init__(self, ledger: Ledger, client: Client, measures: RelayMeasures | None = None) -> None:
        self._ledger = ledger
        self._measures = measures or RelayMeasures()
        self._client = client
        self._missing: set[str] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.run_once()
            except Exception as error:
                self._missing.clear()
                if not is_unavailable(error) and not isinstance(error, RPCError):
                    log.error("takeover_failed", error_type=type(error).__name__)

    async def run_once(self) -> int:
        """One look; returns how many workers' work was handed on."""
        missing = await self._ledger.workers.without_lock()
        lost, self._missing = missing & self._missing, missing
        if lost:
            await self._ledger.workers.mark_lost(lost)
        workers = await self._ledger.workers.to_take_over()
        for worker in workers:
            await self._hand_on(worker)
        return len(workers)

    async def _hand_on(self, worker: LostWorker) -> None:
        jobs = await self._ledger.workers.jobs_of(worker.id)
        handed_on = await asyncio.gather(*(self._release(job_id, worker) for job_id in jobs))
        await self._ledger.workers.mark_taken_over(worker.id)
        self._measures.taken_over(sum(handed_on))
        log.warning("worker_lost", worker=worker.id, jobs=len(jobs), activities=sum(handed_on))

    async def _release(self, job_id: str, worker: LostWorker) -> int:
        workflow_id = keys.workflow_id(job_id)
        async with self._slots:
            try:
                run_id, held = await self._held_by(workflow_id, worker)
                for activity in held:
                    await self._report_failed(workflow_id, activity.activity_id)
                await self._forget_cache(workflow_id)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:  # over meanwhile, or done by another taker
                    raise
                return 0
        await self._tell_lost(job_id, run_id, held)
        return len(held)

    async def _held_by(self, workflow_id: str, worker: LostWorker) -> tuple[str, list[PendingActivityInfo]]:
        described = await self._client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
        pending = described.raw_description.pending_activities
        return described.run_id or "", [activity for activity in pending if _is_held(activity, worker)]

    async def _tell_lost(self, job_id: str, run_id: str, held: list[PendingActivityInfo]) -> None:
        job = await self._ledger.jobs.trace(job_id) if held and is_on() else None
        if job is not None:
            for activity in held:
                attempt_lost(job, run_id, activity)

    async def _report_failed(self, workflow_id: str, activity_id: str) -> None:
        handle = self._client.get_async_activity_handle(
            workflow_id=workflow_id, run_id=None, activity_id=activity_id
        )
        # A millisecond: zero would mean the retry policy's own interval.
        lost = ApplicationError("worker lost", type="worker_lost", next_retry_delay=timedelta(milliseconds=1))
        await handle.fail(lost, rpc_timeout=RPC_TIMEOUT)

    async def _forget_cache(self, workflow_id: str) -> None:
        # Its next task would wait for the dead worker's own queue to time out.
        request = ResetStickyTaskQueueRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
        )
        await self._client.workflow_service.reset_sticky_task_queue(request, timeout=RPC_TIMEOUT)


def _is_held(activity: PendingActivityInfo, worker: LostWorker) -> bool:
    # What the same process was given after it came back under a new id is not the lost one's.
    return (
        activity.state in _IN_HAND
        and activity.last_worker_identity == worker.identity
        and activity.last_started_time.ToDatetime(tzinfo=UTC) <= worker.lost_at
    )
