"""The watchdog: no way to die goes unnoticed. Several looks at ledger and Temporal, each by itself.

Each may be made by several relays at once, and be cut off anywhere: what it does is done once, by the job's
generation in the ledger and by the run in Temporal. An error ends a look, and nothing is concluded from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.leftover_workflows import LeftoverWorkflows
from agentjobs.outbox.lost_words import LostWords
from agentjobs.outbox.overdue_jobs import OverdueJobs
from agentjobs.outbox.stuck_workflows import StuckWorkflows
from agentjobs.outbox.task_queue import TaskQueueWatch
from agentjobs.outbox.unmoved_jobs import UnmovedJobs

log = structlog.get_logger()

LOOK_SECONDS = 5.0
"""How late a finding may be, beside the time that makes it one."""

_DOWN = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.ABORTED,
    }
)

Look = Callable[[], Awaitable[int]]


class Watchdog:
    """All looks of one relay, side by side: a slow one holds up no other."""

    def __init__(self, ledger: Ledger, client: Client, task_queue: str) -> None:
        stuck = StuckWorkflows(ledger, client, task_queue)
        self._looks: dict[str, Look] = {
            "stuck_workflows": stuck.run_once,
            "unmoved_jobs": UnmovedJobs(ledger, client, stuck).run_once,
            "overdue_jobs": OverdueJobs(ledger).run_once,
            "lost_words": LostWords(ledger, client).run_once,
            "leftover_workflows": LeftoverWorkflows(ledger, client, task_queue).run_once,
            "task_queue": TaskQueueWatch(ledger, client, task_queue).run_once,
        }

    async def run(self) -> None:
        """Look until cancelled."""
        async with asyncio.TaskGroup() as looks:
            for name, look in self._looks.items():
                looks.create_task(_again_and_again(name, look))


async def _again_and_again(name: str, look: Look) -> None:
    failed_of = ""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await look()
            failed_of = ""
        except Exception as error:
            failed_of = _told_once(name, error, failed_of)


def _told_once(name: str, error: Exception, failed_of: str) -> str:
    """Log a fault of ours when it is a new one; that a server is away is told elsewhere."""
    if is_unavailable(error) or (isinstance(error, RPCError) and error.status in _DOWN):
        return ""
    kind = error.status.name if isinstance(error, RPCError) else type(error).__name__
    if kind != failed_of:
        log.error("watch_failed", look=name, error_type=kind)
    return kind
