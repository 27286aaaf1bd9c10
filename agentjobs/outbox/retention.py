"""The lane in which what has expired is removed. (Of workflows: workflow_deletion.py.)"""

import asyncio

import structlog

from agentjobs.domain.retention import RetentionPolicy
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger

log = structlog.get_logger()

PAUSE_SECONDS = 0.2
"""Between two batches: a backlog of months is removed over hours, not against the work of the day."""

IDLE_SECONDS = 60.0
"""Days are counted: nothing is a minute late."""


class RetentionSweep:
    """Several relays may run it: one at a time sweeps."""

    def __init__(self, ledger: Ledger, policy: RetentionPolicy) -> None:
        self._ledger = ledger
        self._policy = policy

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            try:
                removed = await self.run_once()
            except Exception as error:
                removed = 0
                if not is_unavailable(error):
                    log.error("retention_failed", error_type=type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS if removed else IDLE_SECONDS)

    async def run_once(self) -> int:
        """One batch of each kind; returns of how many things something was removed."""
        removed = await self._ledger.retention.sweep(self._policy)
        # Tables that keep to days of their own.
        removed += await self._ledger.webhook_deliveries.prune()
        if removed:
            log.info("retention_removed", count=removed)
        return removed
