"""Deletes what Temporal has of a job whose content is gone: every run under its workflow id, history and all.

A job is one run or several (a redrive goes on in a new one). Runs are found by visibility, and the latest by
its id. A deletion is carried out by Temporal when it has the time, so only a look that finds nothing is the
last one, and only after it may the job's row go. A start that comes late meets the row, which says that the job
is over.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from agentjobs.domain import keys
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.described import RPC_TIMEOUT, described, says_no_such_workflow

log = structlog.get_logger()

BATCH = 20
"""At once, as many: Temporal's front end is for jobs first."""

IDLE_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 1.0
"""A deletion is carried out a little later; nobody waits for it."""

OPEN_SECONDS = 10.0
"""Its job is over, so it closes by itself, or is ended (leftover_workflows.py)."""

LEASE_SECONDS = 60.0
"""Longer than a batch may take with every call timing out."""


class WorkflowDeletion:
    """Several relays may run it: each job is looked at by one of them."""

    def __init__(self, ledger: Ledger, client: Client) -> None:
        self._ledger = ledger
        self._client = client

    async def run(self) -> None:
        """Delete until cancelled."""
        while True:
            try:
                gone = await self.run_once()
            except Exception as error:
                gone = 0
                if not is_unavailable(error) and not isinstance(error, RPCError):
                    log.error("workflow_deletion_failed", error_type=type(error).__name__)
            if gone == 0:
                await asyncio.sleep(IDLE_SECONDS)

    async def run_once(self) -> int:
        """One batch; returns of how many jobs nothing is left. What had no answer is asked again later."""
        retention = self._ledger.retention
        jobs = await retention.claim_workflow_looks(BATCH, lease_seconds=LEASE_SECONDS)
        waits = await asyncio.gather(*(self._look(job_id) for job_id in jobs), return_exceptions=True)
        looked = list(zip(jobs, waits, strict=True))
        gone = [job_id for job_id, wait in looked if wait is None]
        await retention.workflows_are_gone(gone)
        for seconds in (LOOK_AGAIN_SECONDS, OPEN_SECONDS):
            left = [job_id for job_id, wait in looked if wait == seconds]
            await retention.look_for_workflows_again(left, wait_seconds=seconds)
        for wait in waits:
            if isinstance(wait, BaseException):
                raise wait
        return len(gone)

    async def _look(self, job_id: str) -> float | None:
        """Delete what is there; the seconds until the next look, or None when nothing was."""
        workflow_id = keys.workflow_id(job_id)
        latest = await described(self._client, workflow_id)
        if latest is not None and latest.ended is None:
            return OPEN_SECONDS
        runs = {run.run_id async for run in self._runs(workflow_id)} | ({latest.run_id} if latest else set())
        deleted = [await self._delete(workflow_id, run_id) for run_id in sorted(runs) if run_id]
        # Visibility may go on showing for a while what is not there any more.
        return LOOK_AGAIN_SECONDS if any(deleted) else None

    def _runs(self, workflow_id: str) -> AsyncIterator[WorkflowExecution]:
        return self._client.list_workflows(f'WorkflowId = "{workflow_id}"', rpc_timeout=RPC_TIMEOUT)

    async def _delete(self, workflow_id: str, run_id: str) -> bool:
        request = DeleteWorkflowExecutionRequest(
            namespace=self._client.namespace,
            workflow_execution=ExecutionId(workflow_id=workflow_id, run_id=run_id),
        )
        try:
            await self._client.workflow_service.delete_workflow_execution(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if says_no_such_workflow(error):
                return False
            raise
        return True
