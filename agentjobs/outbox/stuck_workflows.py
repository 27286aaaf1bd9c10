"""Workflows whose code fails again and again: their jobs are dead, and the run is ended.

The server marks them in a search attribute after five failures (half a minute with our workflow task timeout), so
one query finds all of them, however many jobs there are. Each is looked at by its id before anything is concluded.
"""

import structlog
from temporalio.client import Client

from agentjobs.domain import keys
from agentjobs.domain.failures import Category
from agentjobs.domain.states import LIVE
from agentjobs.ledger.jobs import Standing
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.burying import bury
from agentjobs.outbox.described import RPC_TIMEOUT, Described, described, end, why_stuck
from agentjobs.temporal import AGENT_JOB, DEAD_LETTER_DESK

log = structlog.get_logger()

BATCH = 500
"""Settled at one look; a bad deploy may leave thousands, and the rest are found at the next."""


class StuckWorkflows:
    """Finds them by the server's mark, and settles them; `settle` is also for those that were found otherwise."""

    def __init__(self, ledger: Ledger, client: Client, task_queue: str) -> None:
        self._ledger = ledger
        self._client = client
        self._query = (
            f'TaskQueue = "{task_queue}" AND WorkflowType IN ("{AGENT_JOB}", "{DEAD_LETTER_DESK}") '
            'AND ExecutionStatus = "Running" AND TemporalReportedProblems IS NOT NULL'
        )

    async def run_once(self) -> int:
        """One look; returns how many it settled."""
        marked = self._client.list_workflows(self._query, limit=BATCH, rpc_timeout=RPC_TIMEOUT)
        found = sorted({run.id async for run in marked})
        return sum([await self._settle_by_id(workflow_id) for workflow_id in found])

    async def _settle_by_id(self, workflow_id: str) -> bool:
        standing = None
        if workflow_id.startswith(keys.WORKFLOW_ID_PREFIX):
            # Read before Temporal is asked: whatever happens to the job in between makes the burial void.
            standing = await self._ledger.jobs.standing(workflow_id.removeprefix(keys.WORKFLOW_ID_PREFIX))
        workflow = await described(self._client, workflow_id)
        return workflow is not None and await self.settle(workflow, standing)

    async def settle(self, workflow: Described, job: Standing | None) -> bool:
        """If it is stuck, bury its live job and end the run. True when it was.

        A stuck run whose job is dead already only stands in the way of the reviewer's word, which a new run can
        carry out; one of a job that is over, or of the desk, has nothing to lose either (the desk is started and
        told again). The death comes first: with the run ended first, it would be found for another reason.
        """
        cause = await why_stuck(self._client, workflow)
        if cause is None:
            return False
        if job is not None and job.state in LIVE:
            await bury(self._ledger, job, Category.WORKFLOW_STUCK, f"its workflow cannot go on: {cause}")
        await end(self._client, workflow, f"agentjobs: stuck ({cause})")
        log.error("workflow_stuck", workflow=workflow.workflow_id, cause=cause)
        return True
