"""Tells workflows of their waits, so that the Temporal UI can show them. A display: what is lost here is only not
shown.

At most BATCH notices every PAUSE_SECONDS: thousands of jobs that wait for the same provider are not to flood
Temporal, which would slow down what can go on.
"""

import asyncio

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from activities.inputs import WaitNotice
from agentjobs.domain import keys
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.waits import Wait
from agentjobs.outbox.described import RPC_TIMEOUT
from workflows.agent_job import AgentJob

log = structlog.get_logger()

BATCH = 20
PAUSE_SECONDS = 0.5


class WaitNotices:
    """Several may run: each wait is told by one of them."""

    def __init__(self, ledger: Ledger, client: Client) -> None:
        self._ledger = ledger
        self._client = client

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                await self.run_once()
            except Exception as error:
                if not is_unavailable(error):
                    log.error("wait_notices_failed", error_type=type(error).__name__)

    async def run_once(self) -> int:
        """One batch; returns how many waits were told."""
        waits = await self._ledger.waits.claim(BATCH)
        return sum(await asyncio.gather(*(self._tell(wait) for wait in waits)))

    async def _tell(self, wait: Wait) -> bool:
        handle = self._client.get_workflow_handle_for(AgentJob.run, keys.workflow_id(wait.job_id))
        notice = WaitNotice(step=wait.step, attempt=wait.attempt, category=wait.category, until=wait.until)
        try:
            await handle.signal(AgentJob.attempt_waits, notice, rpc_timeout=RPC_TIMEOUT)
        except RPCError:
            return False
        return True
