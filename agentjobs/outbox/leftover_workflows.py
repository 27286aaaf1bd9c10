"""Workflows that still run although the ledger says that their job is over: they are ended.

A final job has nothing left to do or to undo, so nothing is lost. (A dead one's workflow waits for a person.)
A page of the open workflows at each look: the whole list is read in as many looks as it has pages.
"""

import structlog
from temporalio.client import Client

from agentjobs.domain import keys
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.described import RPC_TIMEOUT, described, end
from agentjobs.temporal import AGENT_JOB

log = structlog.get_logger()

PAGE = 1000
"""Workflows a look: one query of visibility, and one of the ledger."""

GRACE_SECONDS = 60.0
"""A workflow closes within moments of recording its job's end, unless there is no worker."""


class LeftoverWorkflows:
    """Compares the next page of open workflows at each look."""

    def __init__(
        self, ledger: Ledger, client: Client, task_queue: str, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self._ledger = ledger
        self._client = client
        self._grace_seconds = grace_seconds
        self._query = (
            f'WorkflowType = "{AGENT_JOB}" AND TaskQueue = "{task_queue}" AND ExecutionStatus = "Running"'
        )
        self._page: bytes | None = None

    async def run_once(self) -> int:
        """One look at the next page; returns how many workflows it ended."""
        jobs = await self._next_page()
        over = await self._ledger.comparing.final_of(jobs, grace_seconds=self._grace_seconds)
        return sum([await self._end(job_id) for job_id in sorted(over)])

    async def _next_page(self) -> list[str]:
        page, self._page = self._page, None  # a page that is refused, or was the last one: from the start again
        found = self._client.list_workflows(
            self._query, page_size=PAGE, next_page_token=page, rpc_timeout=RPC_TIMEOUT
        )
        await found.fetch_next_page()
        self._page = found.next_page_token or None
        return [run.id.removeprefix(keys.WORKFLOW_ID_PREFIX) for run in found.current_page or ()]

    async def _end(self, job_id: str) -> bool:
        workflow = await described(self._client, keys.workflow_id(job_id))
        if workflow is None or workflow.ended:
            return False
        await end(self._client, workflow, "agentjobs: its job is over")
        log.warning("leftover_workflow_ended", job=job_id)
        return True
