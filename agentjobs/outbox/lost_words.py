"""Reviewers' words that were delivered to a workflow which is no longer there: their letters take a word again."""

from temporalio.client import Client

from agentjobs.domain import keys
from agentjobs.ledger.ledger import Ledger
from agentjobs.outbox.described import described
from agentjobs.outbox.unmoved_jobs import STILL_SECONDS

BATCH = 100


class LostWords:
    """Looks at the next few letters with a word that is under way."""

    def __init__(self, ledger: Ledger, client: Client, still_seconds: float = STILL_SECONDS) -> None:
        self._ledger = ledger
        self._client = client
        self._still_seconds = still_seconds
        self._after = ""

    async def run_once(self) -> int:
        """One look; returns how many letters it opened again."""
        jobs = await self._ledger.comparing.words_lost(self._after, still_seconds=self._still_seconds, batch=BATCH)
        reopened = sum([await self._reopen(job_id) for job_id in jobs])
        self._after = jobs[-1] if len(jobs) == BATCH else ""
        return reopened

    async def _reopen(self, job_id: str) -> bool:
        workflow = await described(self._client, keys.workflow_id(job_id))
        if workflow is not None and not workflow.ended:
            return False  # it is being carried out
        return await self._ledger.dead_letters.reopen(job_id, settled_seconds=self._still_seconds)
