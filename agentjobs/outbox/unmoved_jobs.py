"""Live jobs that do not move, held against Temporal: those whose workflow is gone are dead, and what was to be
told of them and got lost is queued again.

A window moves over all live jobs, WINDOW of them at each look. Visibility is asked for many at once, and by it
most are known to be under way; the others are looked up by their ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime

import structlog
from temporalio.client import Client

from agentjobs.domain import keys
from agentjobs.domain.failures import Category
from agentjobs.ledger.comparing import Compared
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import Topic
from agentjobs.outbox.burying import bury
from agentjobs.outbox.described import RPC_TIMEOUT, described
from agentjobs.outbox.stuck_workflows import StuckWorkflows

log = structlog.get_logger()

WINDOW = 1000
"""Live jobs a look: 100,000 take a hundred looks, which is eight minutes, and each costs a few milliseconds."""

STILL_SECONDS = 15.0
"""A job that moves needs no second look. Longer than the relay takes from Temporal's answer to its own commit."""

ASKED_AT_ONCE = 200
"""Ids in one query of visibility."""

AT_ONCE = 20
"""Look-ups at the same time: Temporal's front end is for jobs first."""


class UnmovedJobs:
    """Compares the next window of live jobs at each look."""

    def __init__(
        self,
        ledger: Ledger,
        client: Client,
        stuck: StuckWorkflows,
        *,
        still_seconds: float = STILL_SECONDS,
        window: int = WINDOW,
    ) -> None:
        self._ledger = ledger
        self._client = client
        self._stuck = stuck
        self._still_seconds = still_seconds
        self._window = window
        self._after: tuple[datetime | None, str] = (None, "")
        self._missing: dict[str, Compared] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run_once(self) -> int:
        """One look at the next window; returns how many jobs it buried, ended or queued again."""
        jobs = await self._ledger.comparing.live_window(
            self._after, still_seconds=self._still_seconds, window=self._window
        )
        still = self._missing | {job.job_id: job for job in jobs if job.still}
        settled = await self._settled(list(still.values()))
        # Only now: a window in which Temporal or the ledger did not answer is looked at again.
        self._after = (jobs[-1].deadline_at, jobs[-1].job_id) if len(jobs) == self._window else (None, "")
        return settled

    async def _settled(self, jobs: list[Compared]) -> int:
        lost_starts = [job for job in jobs if not job.dispatched and Topic.START_JOB not in job.queued]
        suspects = await self._suspects([job for job in jobs if job.dispatched])
        started = [await self._start_again(job) for job in lost_starts]
        looked_up = await asyncio.gather(*(self._look_up(job) for job in suspects), return_exceptions=True)
        for outcome in looked_up:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(started) + sum(outcome is True for outcome in looked_up)

    async def _suspects(self, jobs: list[Compared]) -> list[Compared]:
        """Those that visibility does not show as running without problems, or of which a cancel was promised."""
        healthy: set[str] = set()
        for start in range(0, len(jobs), ASKED_AT_ONCE):
            healthy |= await self._healthy(job.job_id for job in jobs[start : start + ASKED_AT_ONCE])
        return [job for job in jobs if job.job_id not in healthy or self._is_looked_up_always(job)]

    def _is_looked_up_always(self, job: Compared) -> bool:
        may_have_lost_its_cancel = job.cancelling and Topic.CANCEL_JOB not in job.queued
        return may_have_lost_its_cancel or job.job_id in self._missing

    async def _healthy(self, job_ids: Iterable[str]) -> set[str]:
        ids = ", ".join(f'"{keys.workflow_id(job_id)}"' for job_id in job_ids)
        query = f'WorkflowId IN ({ids}) AND ExecutionStatus = "Running" AND TemporalReportedProblems IS NULL'
        found = self._client.list_workflows(query, page_size=ASKED_AT_ONCE, rpc_timeout=RPC_TIMEOUT)
        return {run.id.removeprefix(keys.WORKFLOW_ID_PREFIX) async for run in found}

    async def _start_again(self, job: Compared) -> bool:
        queued = await self._ledger.comparing.requeue_start(job.job_id)
        if queued:
            log.warning("lost_start_queued_again", job=job.job_id)
        return queued

    async def _look_up(self, job: Compared) -> bool:
        async with self._slots:
            workflow = await described(self._client, keys.workflow_id(job.job_id))
            if workflow is None:
                return await self._gone(job)
            self._missing.pop(job.job_id, None)
            if workflow.ended:
                message = f"its workflow ended without the job's end ({workflow.ended})"
                return await bury(self._ledger, job, Category.TERMINATED, message)
            if await self._stuck.settle(workflow, job):
                return True
            return job.cancelling and not workflow.cancel_requested and await self._cancel_again(job)

    async def _gone(self, job: Compared) -> bool:
        # At two looks: a cluster that takes over from another may answer before it knows all of its workflows.
        if job.job_id not in self._missing:
            self._missing[job.job_id] = job
            return False
        del self._missing[job.job_id]
        message = "its workflow is gone: deleted, or lost by Temporal"
        return await bury(self._ledger, job, Category.TERMINATED, message)

    async def _cancel_again(self, job: Compared) -> bool:
        queued = await self._ledger.comparing.requeue_cancel(job.job_id)
        if queued:
            log.warning("lost_cancel_queued_again", job=job.job_id)
        return queued
