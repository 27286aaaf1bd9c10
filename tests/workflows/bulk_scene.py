"""A destination that is broken until somebody mends it, jobs that died of it, and bulk redrives of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowHandle

from agentjobs.domain import bulk
from agentjobs.domain.bulk import Counts, RedriveState
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.states import JobState
from agentjobs.ledger.redrive_records import LetterFilter, RedriveOrder, RedriveRecord, Word
from agentjobs.outbox.redrive_calls import RedriveCalls
from agentjobs.providers.model import ToolCall
from agentjobs.tools.tickets import CreateTicket
from agentjobs.tools.tool import Tool, ToolContext, ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.fakes import Counted, NoArguments, ScriptedProvider
from tests.world import World, eventually


class Destination(Tool[NoArguments]):
    """Counts its calls by job. Refuses all while `broken`, and those of the jobs in `refused` for good."""

    name = "search_tickets"
    description = "Breaks."
    arguments = NoArguments

    def __init__(self) -> None:
        self.broken = True
        self.refused: set[str] = set()
        self.held = asyncio.Event()
        self.held.set()
        self.calls: list[str] = []
        self.done: Counter[str] = Counter()

    @property
    def effect_class(self) -> EffectClass:
        """A repeated call would be a second effect."""
        return EffectClass.UNSAFE

    async def call(self, arguments: NoArguments, context: ToolContext) -> Counted:
        """Count, then refuse or do."""
        self.calls.append(context.job.id)
        await self.held.wait()
        if self.broken or context.job.id in self.refused:
            raise PermanentError(Category.ACCESS_DENIED, "the destination refuses", nothing_happened=True)
        self.done[context.job.id] += 1
        return Counted(calls=self.done[context.job.id])


@dataclass
class BulkScene:
    """One tenant with dead jobs, and what a reviewer does about them."""

    world: World
    destination: Destination = field(default_factory=Destination)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A worker, a relay, and who calls bulk redrives."""
        provider = ScriptedProvider(steps=(ToolCall(tool=Destination.name, arguments={}),))
        async with self.world.running(
            provider, ToolRegistry((self.destination, CreateTicket(PostgresTracker(self.world.ledger.tickets))))
        ):
            calling = asyncio.create_task(self.calls().run())
            try:
                yield
            finally:
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)

    def calls(self) -> RedriveCalls:
        """The lane of the relay that calls bulk redrives."""
        return RedriveCalls(self.world.ledger, self.world.client, self.world.tenant)

    async def dead_jobs(self, count: int) -> list[str]:
        """Jobs that died of the broken destination, once something runs."""
        jobs = [await self.world.submit(deadline_seconds=86_400) for _ in range(count)]
        await self.until_states(jobs, {JobState.DEAD: count})
        return jobs

    async def states(self, jobs: list[str]) -> Counter[JobState]:
        """How many of the jobs are in which state."""
        rows = await self.world.ledger.database.pool.fetch("SELECT state FROM jobs WHERE id = ANY ($1)", jobs)
        return Counter(JobState(row["state"]) for row in rows)

    async def until_states(self, jobs: list[str], wanted: dict[JobState, int]) -> None:
        """Once just so many are in each of these states."""

        async def look() -> bool:
            return await self.states(jobs) == wanted

        await eventually(look, f"the jobs to be {wanted}", lambda: asyncio.sleep(0.2))

    async def start(self, *, approval_above: int = 10_000, by: str = "rita", **changes: Any) -> str:
        """A bulk redrive, fast; its id."""
        wanted = {
            "id": str(uuid4()),
            "tenant": self.world.tenant,
            "created_by": by,
            "note": "in a test",
            "filter": LetterFilter(),
            "policy": "original",
            "again": False,
            "canary": 1,
            "share": 0.1,
            "rate_per_second": 50.0,
            "failure_limit": 0.2,
            "verdict_seconds": 600,
            "key": None,
            "fingerprint": "f",
        }
        order = RedriveOrder.model_validate({**wanted, **changes})
        return (await self.world.ledger.redrives.accept(order, approval_above=approval_above)).id

    async def say(self, word: Word, redrive_id: str, *, by: str = "rita", note: str | None = None) -> None:
        """A person's word."""
        assert await self.world.ledger.redrives.change(word, self.world.tenant, redrive_id, actor=by, note=note)

    async def record(self, redrive_id: str) -> RedriveRecord:
        """As it stands."""
        record = await self.world.ledger.redrives.read(self.world.tenant, redrive_id)
        assert record is not None
        return record

    async def counts(self, redrive_id: str) -> Counts:
        """What has become of its letters."""
        return (await self.world.ledger.redrives.standing(await self.record(redrive_id))).counts

    async def until(self, redrive_id: str, *states: RedriveState) -> RedriveRecord:
        """Once it is in one of these states (or over, if none is given)."""

        async def look() -> RedriveRecord | None:
            record = await self.record(redrive_id)
            return record if record.state in (states or bulk.FINAL) else None

        return await eventually(look, f"the bulk redrive to be {[*states] or 'over'}", lambda: asyncio.sleep(0.1))

    async def until_asked(self, redrive_id: str, count: int) -> None:
        """Once so many words were given."""

        async def look() -> bool:
            return (await self.record(redrive_id)).asked >= count

        await eventually(look, f"{count} letters to be asked")

    async def words_on(self, jobs: Iterable[str]) -> Counter[str]:
        """How often the word was given on each."""
        rows = await self.world.ledger.database.pool.fetch(
            "SELECT job_id FROM job_events WHERE type = 'redrive_requested' AND job_id = ANY ($1)", list(jobs)
        )
        return Counter(row["job_id"] for row in rows)

    async def shows(self, redrive_id: str, words: str) -> None:
        """Once the Temporal UI's line begins with these words."""

        async def look() -> bool:
            query = "__temporal_workflow_metadata"
            metadata = await self.workflow(redrive_id).query(query, result_type=WorkflowMetadata)
            return bool(metadata.current_details.startswith(words))

        await eventually(look, f"the workflow to show {words!r}")

    def workflow(self, redrive_id: str) -> WorkflowHandle[object, object]:
        """The workflow of a bulk redrive."""
        return self.world.client.get_workflow_handle(bulk.workflow_id(redrive_id))
