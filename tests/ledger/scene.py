"""A tenant and its jobs in a real ledger, without Temporal."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.job import Budget, Principal
from agentjobs.domain.states import JobState
from agentjobs.ledger.effects import Begun, Intent
from agentjobs.ledger.jobs import Submission
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import DeadLetterRecord, EffectRecord, JobRecord
from tests.world import eventually

CREATE_TICKET = keys.tool_step(1, "create_ticket")
MODEL_CALL: dict[str, Any] = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}
"""What an intent to ask a model says of itself."""

_numbers = count(1)


def submission(tenant: str, **changes: Any) -> Submission:
    """A request, as the API would hand it to the ledger."""
    text = changes.pop("text", "My printer is on fire")
    user = changes.pop("user", "ann")
    return Submission.model_validate(
        {
            "id": f"job-{next(_numbers)}",
            "principal": Principal(tenant=tenant, user=user),
            "agent": "support-triage",
            "policy_version": "1",
            "origin": "test",
            "text": text,
            "priority": 3,
            "budget": Budget(),
            "deadline_seconds": 3600,
            "key": None,
            "fingerprint": keys.fingerprint({"text": text}),
            **changes,
        }
    )


@dataclass(frozen=True)
class Scene:
    """The tenant `acme`, and what a test does to it."""

    ledger: Ledger
    tenant: str = "acme"

    @classmethod
    async def set_up(cls, ledger: Ledger) -> "Scene":
        """With the tenant in place."""
        scene = cls(ledger)
        await ledger.identity.create_tenant(scene.tenant)
        return scene

    async def accept(self, **changes: Any) -> JobRecord:
        """A job, accepted."""
        return await self.ledger.jobs.accept(submission(changes.pop("tenant", self.tenant), **changes))

    async def running(self, **changes: Any) -> str:
        """A job with its plan done; its id."""
        job_id = (await self.accept(**changes)).id
        await self.done(job_id, keys.PLAN, {"text": "a plan"}, **MODEL_CALL)
        return job_id

    async def dead(self, **changes: Any) -> str:
        """A job that died once; its id."""
        job_id = (await self.accept(**changes)).id
        await self.bury(job_id)
        return job_id

    async def bury(
        self, job_id: str, *, generation: int = 0, reason: Category = Category.ACCESS_DENIED
    ) -> JobState:
        """The job dies of this."""
        died_of = failure(reason, "no such grant", CREATE_TICKET)
        return await self.ledger.outcomes.bury(job_id, generation=generation, failure=died_of, worker="w1")

    def intent(self, job_id: str, step: str = CREATE_TICKET, **changes: Any) -> Intent:
        """What an attempt is about to do: a transactional tool call, unless told otherwise."""
        return Intent.model_validate(
            {
                "job_id": job_id,
                "step": step,
                "key": keys.step_key(job_id, step),
                "kind": EffectKind.TOOL,
                "name": "create_ticket",
                "effect_class": EffectClass.TRANSACTIONAL,
                "fingerprint": "f" * 64,
                "run_id": "run-1",
                "attempt": 1,
                "worker": "w1",
                **changes,
            }
        )

    async def begin(self, job_id: str, step: str = CREATE_TICKET, **changes: Any) -> Begun:
        """An attempt begins."""
        return await self.ledger.effects.begin(self.intent(job_id, step, **changes))

    async def begin_attempt(self, job_id: str, step: str = CREATE_TICKET, **changes: Any) -> int:
        """An attempt begins; its id."""
        begun = await self.begin(job_id, step, **changes)
        assert begun.attempt_id is not None
        return begun.attempt_id

    async def done(self, job_id: str, step: str, result: dict[str, Any], **changes: Any) -> None:
        """An effect, begun and completed."""
        attempt_id = await self.begin_attempt(job_id, step, **changes)
        await self.ledger.effects.complete(self.intent(job_id, step, **changes), attempt_id, result)

    async def fail(
        self,
        attempt_id: int,
        *,
        release: bool,
        wait_seconds: float | None = 30.0,
        category: Category = Category.UNAVAILABLE,
        paid: Usage | None = None,
    ) -> None:
        """The attempt failed."""
        failed = failure(category, "away", CREATE_TICKET)
        await self.ledger.effects.fail(attempt_id, failed, wait_seconds=wait_seconds, release=release, paid=paid)

    async def abandon(self, job_id: str, step: str = CREATE_TICKET) -> None:
        """The effect is given up."""
        await self.ledger.effects.abandon(job_id, keys.step_key(job_id, step))

    async def job(self, job_id: str) -> JobRecord:
        """The job as it stands."""
        record = await self.ledger.jobs.read(self.tenant, job_id)
        assert record is not None
        return record

    async def effect(self, job_id: str, step: str = CREATE_TICKET) -> EffectRecord:
        """The effect as it stands."""
        record = await self.ledger.effects.read(keys.step_key(job_id, step))
        assert record is not None
        return record

    async def letter(self, job_id: str) -> DeadLetterRecord:
        """The job's dead letter as it stands."""
        record = await self.ledger.dead_letters.read(self.tenant, job_id)
        assert record is not None
        return record

    async def outcomes(self, job_id: str) -> list[tuple[str, str | None]]:
        """Every attempt's outcome and category, in the order in which they began."""
        return [(attempt.outcome, attempt.category) for attempt in await self.ledger.jobs.attempts(job_id)]

    async def events(self, job_id: str) -> list[str]:
        """The job's events by name, in order."""
        return [event.type for event in await self.ledger.jobs.events(job_id)]

    async def topics(self) -> list[str]:
        """What the outbox asks for, in order."""
        return [row["topic"] for row in await self.rows("SELECT topic FROM outbox ORDER BY id")]

    async def count(self, table: str) -> int:
        """How many rows the table has."""
        number: int = await self.ledger.database.pool.fetchval(f"SELECT count(*) FROM {table}")
        return number

    async def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """Rows of a statement of the test's own."""
        return [dict(row) for row in await self.ledger.database.pool.fetch(statement, *values)]

    async def execute(self, statement: str, *values: object) -> None:
        """A statement of the test's own."""
        await self.ledger.database.pool.execute(statement, *values)

    @asynccontextmanager
    async def held(self, job_id: str) -> AsyncIterator[None]:
        """Whatever is written about the job waits until the block ends."""
        async with self.ledger.database.transaction() as connection:
            await connection.execute("SELECT FROM jobs WHERE id = $1 FOR UPDATE", job_id)
            yield

    async def until_under_way(self, writes: Sequence[asyncio.Task[Any]]) -> None:
        """Until each of these waits for a lock in the database, or is done."""

        async def look() -> bool:
            waiting = await self.rows(
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return len(waiting) + sum(write.done() for write in writes) >= len(writes)

        await eventually(look, "the writes to wait for the job")

    async def set_state(self, job_id: str, state: JobState) -> None:
        """Write the state, with everything that it asks for beside the move itself."""
        await self.execute(_SET_STATE, job_id, state.value)

    async def move(self, job_id: str, state: JobState) -> None:
        """Put a pending job into this state, by moves that the schema allows."""
        for step in _WAYS[state]:
            await self.set_state(job_id, step)


RESERVE_TEN = Reservation(tokens=10)

_WAYS: dict[JobState, list[JobState]] = {
    JobState.PENDING: [],
    JobState.RUNNING: [JobState.RUNNING],
    JobState.RETRY_WAIT: [JobState.RUNNING, JobState.RETRY_WAIT],
    JobState.WAITING_APPROVAL: [JobState.RUNNING, JobState.WAITING_APPROVAL],
    JobState.SUCCEEDED: [JobState.RUNNING, JobState.SUCCEEDED],
    JobState.DEAD: [JobState.DEAD],
    JobState.CANCELLED: [JobState.CANCELLED],
    JobState.DISCARDED: [JobState.DEAD, JobState.DISCARDED],
}
_SET_STATE = """
UPDATE jobs
   SET state = $2::text, result = '{}',
       failure = '{"category": "bug", "reason": "bug", "message": "x", "step": null}',
       next_attempt_at = CASE WHEN $2::text = 'retry_wait' THEN now() END,
       finalized_at = CASE WHEN $2::text IN ('succeeded', 'cancelled', 'discarded') THEN now() END
 WHERE id = $1
"""
