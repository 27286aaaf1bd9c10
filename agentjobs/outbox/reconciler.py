"""The reconciler: jobs whose workflow has ended without a word to the ledger are dead, and said to be.

A workflow that ends by itself shows the job's final state in its search attribute JobState. One that was
terminated, has failed or timed out still shows `running`: so one query finds them all. Visibility may lag or be
stale, so each is looked up by its id before anything is concluded. All of it may be done twice, by two relays too.
"""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from agentjobs.domain import keys
from agentjobs.domain.failures import Category
from agentjobs.domain.states import LIVE
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.burying import bury
from agentjobs.outbox.described import RPC_TIMEOUT, described
from agentjobs.temporal import AGENT_JOB

log = structlog.get_logger()

LOOK_SECONDS = 5.0
"""How late a terminated job may be found."""

LOOK_BACK = timedelta(days=1)
"""A relay that was down for longer than this may miss a termination; it is bounded so that a look stays cheap."""

LOOKS_PER_ALERT_SWEEP = 12
"""Once a minute: a desk without a worker is not to be told of the same death at every look."""


class Reconciler:
    """Compares what Temporal has closed with what the ledger believes is under way."""

    def __init__(self, ledger: Ledger, client: Client, task_queue: str) -> None:
        self._ledger = ledger
        self._client = client
        self._task_queue = task_queue

    async def run(self) -> None:
        """Look until cancelled."""
        for look in itertools.count():
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.run_once()
                if look % LOOKS_PER_ALERT_SWEEP == 0:
                    await self._ledger.dead_letters.tell_again()
                    await self._ledger.alerts.wake_desks()
                    await self._ledger.alerts.tell_of_approvals_again()
            except Exception as error:
                if not is_unavailable(error) and not isinstance(error, RPCError):
                    log.error("reconciler_failed", error_type=type(error).__name__)

    async def run_once(self) -> int:
        """One look; returns how many jobs it found dead."""
        found = [run.id async for run in self._client.list_workflows(self._query(), rpc_timeout=RPC_TIMEOUT)]
        return sum([await self._settle(workflow_id) for workflow_id in sorted(set(found))])

    def _query(self) -> str:
        since = (datetime.now(UTC) - LOOK_BACK).isoformat()
        return (
            f'WorkflowType = "{AGENT_JOB}" AND TaskQueue = "{self._task_queue}" '
            f'AND JobState IN ("running", "retry_wait") AND CloseTime > "{since}" '
            'AND ExecutionStatus IN ("Terminated", "Failed", "TimedOut", "Canceled")'
        )

    async def _settle(self, workflow_id: str) -> bool:
        standing = await self._ledger.jobs.standing(workflow_id.removeprefix(keys.WORKFLOW_ID_PREFIX))
        # A dead job may well have lost its workflow: a redrive starts another (lost_words.py).
        if standing is None or standing.state not in LIVE:
            return False
        workflow = await described(self._client, workflow_id)
        # One that is gone altogether is found by the watchdog; one that was completed is not of this query.
        if workflow is None or workflow.ended in (None, "completed"):
            return False
        message = f"its workflow ended without the job's end ({workflow.ended})"
        return await bury(self._ledger, standing, Category.TERMINATED, message)
