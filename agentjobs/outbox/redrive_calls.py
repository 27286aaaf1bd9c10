"""Calls the workflows of bulk redrives: that there is something to begin, to pause, to go on with.

A lane of its own beside the relay's. One call says no more than "look": what was said is in the ledger, so a call
may come twice or late, and whoever ended a workflow by force gets another one.
"""

import asyncio
import itertools

import structlog
from temporalio.client import Client
from temporalio.common import Priority, SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.service import RPCError

from activities.bulk import RedriveRef
from agentjobs.domain import bulk
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.redrive_records import Call
from agentjobs.outbox.described import RPC_TIMEOUT
from agentjobs.outbox.relay import until_woken
from agentjobs.temporal import TENANT
from workflows.bulk_redrive import BulkRedrive

log = structlog.get_logger()

BATCH = 20
FAILED_SECONDS = 5.0
"""Temporal or the database is away, or refuses."""

POLLS_PER_SWEEP = 60
"""Once a minute: which running ones does nobody look at?"""


class RedriveCalls:
    """Several may run: each row is held by one of them."""

    def __init__(self, ledger: Ledger, client: Client, task_queue: str) -> None:
        self._ledger = ledger
        self._client = client
        self._task_queue = task_queue
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Something was put into the outbox."""
        self._wake.set()

    async def run(self) -> None:
        """Call until cancelled."""
        for turn in itertools.count():
            self._wake.clear()
            try:
                if turn % POLLS_PER_SWEEP == 0:
                    await self._ledger.redrives.call_again()
                await self.run_once()
            except Exception as error:
                if not is_unavailable(error):
                    log.error("redrive_calls_failed", error_type=type(error).__name__)
                await asyncio.sleep(FAILED_SECONDS)
                continue
            await until_woken(self._wake)

    async def run_once(self) -> int:
        """One batch; returns how many words left the outbox."""
        async with self._ledger.database.transaction() as connection:
            calls = await self._ledger.redrives.claim_calls(connection, BATCH)
            told = {call.redrive_id: call for call in calls}
            refused = {name: why for name, call in told.items() if (why := await self._refusal(call))}
            taken = [call.id for call in calls if call.redrive_id not in refused]
            await self._ledger.outbox.mark_delivered(connection, taken)
            for call in calls:
                if why := refused.get(call.redrive_id):
                    await self._ledger.outbox.postpone(connection, call.id, why, FAILED_SECONDS)
        return len(taken)

    async def _refusal(self, call: Call) -> str | None:
        """Call; what kept it from being heard, if so: the others are called all the same."""
        try:
            await self._call(call)
        except RPCError as error:
            log.warning("redrive_call_failed", redrive=call.redrive_id, status=error.status.name)
            return error.status.name
        return None

    async def _call(self, call: Call) -> None:
        await self._client.start_workflow(
            BulkRedrive.run,
            RedriveRef(redrive_id=call.redrive_id, tenant=call.tenant),
            id=bulk.workflow_id(call.redrive_id),
            task_queue=self._task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="look",
            search_attributes=TypedSearchAttributes([SearchAttributePair(TENANT, call.tenant)]),
            static_summary="bulk redrive",
            static_details=(
                f"Tenant `{call.tenant}`. `python starter.py redrives show {call.redrive_id}` shows each letter."
            ),
            priority=Priority(fairness_key=call.tenant),
            rpc_timeout=RPC_TIMEOUT,
        )
