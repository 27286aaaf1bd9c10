"""What expires: first a job's content with its workflow, later its row. In small batches, by index.

Every statement takes the jobs' rows first and passes over those that somebody holds: two sweeps at once are
harmless, and so is one beside the busiest job. How long what is kept, domain/retention.py says.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

from agentjobs.domain.retention import RetentionPolicy
from agentjobs.ledger.database import Connection, Database

BATCH: Final = 100
"""Jobs in one transaction: their rows are locked for some ten milliseconds."""

Deed = Callable[[Connection], Awaitable[int]]


class Retention:
    """The sweep of one installation, over all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sweep(self, policy: RetentionPolicy) -> int:
        """One batch of each kind. Returns of how many jobs, bulk redrives and alerts something was removed: of
        none while another relay sweeps.
        """
        return sum([await self._alone(deed) for deed in self._deeds(policy)])

    async def claim_workflow_looks(self, batch: int, *, lease_seconds: float) -> list[str]:
        """Jobs without content whose workflows may be left. Looked for again, by whomever, after the lease."""
        rows = self._database.run.claim_workflow_looks(
            self._database.pool, batch=batch, lease_seconds=lease_seconds
        )
        return [row["id"] async for row in rows]

    async def workflows_are_gone(self, job_ids: list[str]) -> None:
        """Temporal has nothing of them any more."""
        await self._database.run.workflows_are_gone(self._database.pool, ids=job_ids)

    async def look_for_workflows_again(self, job_ids: list[str], *, wait_seconds: float) -> None:
        """They were not gone yet."""
        await self._database.run.look_for_workflows_again(
            self._database.pool, ids=job_ids, wait_seconds=wait_seconds
        )

    def _deeds(self, policy: RetentionPolicy) -> tuple[Deed, ...]:
        """In this order: what refers goes before what it refers to."""
        run = self._database.run
        return (
            lambda connection: self._remove_content(connection, policy.content_age),
            self._prune(run.prune_redrives, policy.jobs_age),
            lambda connection: self._remove_jobs(connection, policy.jobs_age),
            self._prune(run.prune_alerts, policy.jobs_age),
        )

    def _prune(self, statement: Callable[..., Awaitable[int]], age: timedelta) -> Deed:
        return lambda connection: statement(connection, age=age, batch=BATCH)

    async def _alone(self, deed: Deed) -> int:
        async with self._database.transaction() as connection:
            if not await self._database.run.only_one_sweeper(connection):
                return 0
            return await deed(connection)

    async def _remove_content(self, connection: Connection, age: timedelta) -> int:
        run = self._database.run
        ids = await _ids(run.jobs_with_expired_content(connection, age=age, batch=BATCH))
        if ids:
            await run.remove_content(connection, ids=ids)
        return len(ids)

    async def _remove_jobs(self, connection: Connection, age: timedelta) -> int:
        run = self._database.run
        ids = await _ids(run.expired_jobs(connection, age=age, batch=BATCH))
        if ids:
            await run.sign_tickets(connection, ids=ids)
            await run.remove_jobs(connection, ids=ids)
        return len(ids)


async def _ids(rows: Any) -> list[str]:
    return [row["id"] async for row in rows]
