"""Jobs that outlived their deadline because nothing was there to end them: no worker, or no Temporal."""

from agentjobs.domain.failures import Category
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.burying import bury

GRACE_SECONDS = 240.0
"""Longer than the longest call (180 s, workflows/options.py): nothing is in flight any more, and where a worker is
there the job has died of its deadline by itself."""

BATCH = 100


class OverdueJobs:
    """By the ledger alone: a deadline passes also while Temporal is down."""

    def __init__(self, ledger: Ledger, grace_seconds: float = GRACE_SECONDS) -> None:
        self._ledger = ledger
        self._grace_seconds = grace_seconds

    async def run_once(self) -> int:
        """One look; returns how many jobs it found dead."""
        overdue = await self._ledger.comparing.overdue(grace_seconds=self._grace_seconds, batch=BATCH)
        message = "its deadline has passed, and no worker moved it"
        return sum([await bury(self._ledger, job, Category.DEADLINE_EXCEEDED, message) for job in overdue])
