"""Acceptance, reading and cancelling of jobs."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentjobs.domain.job import Budget, Principal
from agentjobs.domain.states import JobState
from agentjobs.ledger.database import Database, Executor
from agentjobs.ledger.records import AttemptRecord, EffectRecord, EventRecord, JobRecord, Record


class Submission(BaseModel):
    """A validated request, ready to be accepted. `fingerprint` is of the request's canonical JSON."""

    model_config = ConfigDict(frozen=True)

    id: str
    principal: Principal
    agent: str
    policy_version: str
    origin: str
    text: str
    priority: int
    budget: Budget
    deadline_seconds: int
    key: str | None
    fingerprint: str
    trace_id: str = Field(default_factory=lambda: secrets.token_hex(16))


class Standing(Record):
    """As much of a job as a comparison with Temporal needs, and its burial."""

    job_id: str
    state: JobState
    generation: int
    step: str | None


class KeyReused(Exception):
    """The idempotency key was used before for another request body: choose a new key."""


class Jobs:
    """Jobs as the API and the command line know them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, submission: Submission, connection: Executor | None = None) -> JobRecord:
        """Accept a job durably; with a key used before for the same request, the first job.

        Raises KeyReused when the key belongs to another request. `connection` makes the acceptance part of
        the caller's own transaction.
        """
        executor = connection or self._database.pool
        row = await self._database.run.accept_job(executor, **_parameters(submission))
        if row is not None:
            return JobRecord.model_validate(dict(row))
        return await self._first_with_key(executor, submission)

    async def _first_with_key(self, executor: Executor, submission: Submission) -> JobRecord:
        row = await self._database.run.find_by_key(
            executor,
            tenant=submission.principal.tenant,
            user=submission.principal.user,
            key=submission.key,
        )
        if row["fingerprint"] != submission.fingerprint:
            raise KeyReused
        return JobRecord.model_validate(dict(row))

    async def read(self, tenant: str, job_id: str, *, user: str | None = None) -> JobRecord | None:
        """A job of this tenant (and of this user, if given)."""
        row = await self._database.run.read_job(self._database.pool, tenant=tenant, id=job_id, user=user)
        return None if row is None else JobRecord.model_validate(dict(row))

    async def standing(self, job_id: str) -> Standing | None:
        """Where a job of any tenant stands: for those who compare, never for callers."""
        row = await self._database.run.standing(self._database.pool, id=job_id)
        return None if row is None else Standing.model_validate(dict(row))

    async def page(
        self,
        tenant: str,
        *,
        user: str | None,
        state: JobState | None,
        agent: str | None,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> list[JobRecord]:
        """Jobs newest first; `before` is (created_at, id) of the last one of the page before."""
        before_at, before_id = before or (None, None)
        rows = self._database.run.list_jobs(
            self._database.pool,
            tenant=tenant,
            user=user,
            state=state,
            agent=agent,
            before_at=before_at,
            before_id=before_id,
            limit=limit,
        )
        return [JobRecord.model_validate(dict(row)) async for row in rows]

    async def attempts(self, job_id: str) -> list[AttemptRecord]:
        """Every attempt of the job, in the order in which they began."""
        rows = self._database.run.attempts_of_job(self._database.pool, job_id=job_id)
        return [AttemptRecord.model_validate(dict(row)) async for row in rows]

    async def effects(self, job_id: str) -> list[EffectRecord]:
        """Every effect of the job, in the order in which they were begun."""
        rows = self._database.run.effects_of_job(self._database.pool, job_id=job_id)
        return [EffectRecord.model_validate(dict(row)) async for row in rows]

    async def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[EventRecord]:
        """The job's events with a seq greater than `after`."""
        rows = self._database.run.events_of_job(self._database.pool, job_id=job_id, after=after, limit=limit)
        return [EventRecord.model_validate(dict(row)) async for row in rows]

    async def request_cancel(self, tenant: str, job_id: str, *, user: str | None, actor: str) -> JobState | None:
        """Record the wish to cancel. Returns the state after it, or None for a job that the caller has not."""
        row = await self._database.run.request_cancel(
            self._database.pool, tenant=tenant, id=job_id, user=user, actor=actor
        )
        return None if row is None else JobState(row["state"])


def _parameters(submission: Submission) -> dict[str, Any]:
    return {
        **submission.model_dump(
            include={
                "id",
                "agent",
                "policy_version",
                "origin",
                "priority",
                "deadline_seconds",
                "key",
                "fingerprint",
                "trace_id",
            }
        ),
        "tenant": submission.principal.tenant,
        "user": submission.principal.user,
        "input": {"text": submission.text},
        "budget_tokens": submission.budget.tokens,
        "budget_usd": submission.budget.usd,
        "budget_steps": submission.budget.steps,
    }
