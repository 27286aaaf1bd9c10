"""The whole stack on the small real model: jobs go in by the API, and what is on record of them comes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import AttemptRecord, DeadLetterRecord, EffectRecord, JobRecord
from agentjobs.stack.ports import LOOPBACK
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack
from tests.e2e.conftest import options_for, started
from tests.model.server import NAME, SLOTS, ModelServer
from tests.model.witness import Witness
from tests.world import OVER, a_moment

TENANT: Final = "dev"
PATIENCE_SECONDS: Final = 1_080

# More would wait at the server, whose patience and ours are then spent on a queue. One more than it has slots, for
# the activities that ask no model.
ACTIVITIES: Final = SLOTS + 1


@dataclass(frozen=True)
class OnRecord:
    """Everything that the ledger knows of a job that is over."""

    job: JobRecord
    attempts: list[AttemptRecord]
    effects: list[EffectRecord]
    letter: DeadLetterRecord | None
    tickets: list[int]

    @property
    def calls(self) -> list[AttemptRecord]:
        """The attempts of model calls."""
        steps = {effect.step for effect in self.effects if effect.kind is EffectKind.MODEL}
        return [attempt for attempt in self.attempts if attempt.step in steps]

    @property
    def sent(self) -> list[AttemptRecord]:
        """Those that got as far as to the server: what does not fit the budget is refused before."""
        return [attempt for attempt in self.calls if attempt.category != Category.BUDGET_EXCEEDED]

    @property
    def plan(self) -> dict[str, Any] | None:
        """The stored plan."""
        return next((effect.result for effect in self.effects if effect.step == keys.PLAN), None)

    @property
    def receipts(self) -> list[str]:
        """The tickets that the receipts name, in the order of their making."""
        created = (effect.result for effect in self.effects if effect.name == "create_ticket")
        return sorted((str(receipt["id"]) for receipt in created if receipt is not None), key=_number)


@dataclass
class Play:
    """One running stack with what a test needs of it."""

    stack: Stack
    ledger: Ledger
    model: ModelServer
    witness: Witness

    async def submit(self, text: str, key: str) -> str:
        """Accepted by the API; the job's id."""
        headers = {"Authorization": f"Bearer {self.stack.info.api_key}", "Idempotency-Key": f'"{key}"'}
        async with httpx.AsyncClient(base_url=self.stack.info.api, headers=headers, trust_env=False) as client:
            answer = await client.post("/v1/jobs", json={"input": {"text": text}})
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["id"]
        return job_id

    async def over(self, job_id: str) -> OnRecord:
        """What is on record, once the job is over and, if it died, somebody was told."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self._is_over(job_id):
                await a_moment()
        return await self.on_record(job_id)

    async def on_record(self, job_id: str) -> OnRecord:
        """What the ledger knows of the job now."""
        job = await self.ledger.jobs.read(TENANT, job_id)
        assert job is not None
        return OnRecord(
            job=job,
            attempts=await self.ledger.jobs.attempts(job_id),
            effects=await self.ledger.jobs.effects(job_id),
            letter=await self.ledger.dead_letters.read(TENANT, job_id),
            tickets=await self._tickets(job_id),
        )

    async def _is_over(self, job_id: str) -> bool:
        job = await self.ledger.jobs.read(TENANT, job_id)
        return job is not None and job.state in OVER

    async def _tickets(self, job_id: str) -> list[int]:
        # Every ticket of the job, whatever its receipts say: the judge of duplicates.
        statement = "SELECT id FROM tickets WHERE operation_key LIKE $1 ORDER BY id"
        rows = await self.ledger.database.pool.fetch(statement, f"agent-job-{job_id}/%")
        return [row["id"] for row in rows]


def _number(ticket: str) -> int:
    return int(ticket.removeprefix("T-"))


@asynccontextmanager
async def playing(home: Path) -> AsyncIterator[Play]:
    """A stack with one worker, whose calls go to a small model of its own, past a witness."""
    async with ModelServer.running(home / "model.log") as model, Witness.before(model.port) as witness:
        options = options_for(
            home,
            AGENTJOBS_MODEL=f"openai-chat:{NAME}",
            AGENTJOBS_WORKER_ACTIVITIES=str(ACTIVITIES),
            OPENAI_BASE_URL=f"http://{LOOPBACK}:{witness.port}/v1",
            OPENAI_API_KEY="none-needed",
            NO_PROXY=LOOPBACK,
        )
        async with started(options) as stack:
            ledger = await Ledger.open(stack.info.database, size=4, application_name="tests")
            yield Play(stack, ledger, model, witness)
            await ledger.close()
    EmbeddedPostgres(home, 1).remove()
