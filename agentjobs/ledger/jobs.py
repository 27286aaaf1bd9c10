"""Acceptance, reading and cancelling of jobs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import asyncpg
from pydantic import BaseModel, ConfigDict, Field

from agentjobs.domain.job import Budget, Principal
from agentjobs.domain.quotas import NO_LIMITS, Limits, QuotaUse
from agentjobs.domain.states import JobState
from agentjobs.ledger.database import Connection, Database, Executor
from agentjobs.ledger.quotas import as_refusal
from agentjobs.ledger.records import AttemptRecord, EffectRecord, EventRecord, JobRecord, Record


class Submission(BaseModel):
    """A validated request, ready to be accepted. `fingerprint` is of its canonical JSON; None without a key."""

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
    fingerprint: str | None
    trace_id: str = Field(default_factory=lambda: secrets.token_hex(16))
    trace_parent: str | None = None
    """The span of who submits, and whether it is sampled."""

    trace_sampled: bool | None = None


class Acceptance(JobRecord):
    """A job that is accepted, and what of its user's and its tenant's quotas is in use."""

    quotas: tuple[QuotaUse, ...]


class Standing(Record):
    """As much of a job as a comparison with Temporal needs, and its burial."""

    job_id: str
    state: JobState
    generation: int
    step: str | None


class JobTrace(Record):
    """As much of a job as its spans need that no worker tells of."""

    job_id: str
    tenant: str
    agent: str
    generation: int
    trace_id: str
    trace_sampled: bool | None
    dispatched_at: datetime | None


class Refusal(Exception):
    """A submission that is not accepted; its docstring is its message."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class KeyReused(Refusal):
    """The idempotency key was used before for another request body: choose a new key."""


class KeyInFlight(Refusal):
    """A request with this idempotency key is being accepted and does not end: ask again a little later."""


class JobErased(Refusal):
    """The job was erased on request: nothing of it is shown, and its idempotency key stays used."""


class Jobs:
    """Jobs as the API and the command line know them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(
        self, submission: Submission, connection: Connection | None = None, *, installation: Limits = NO_LIMITS
    ) -> Acceptance:
        """Accept a job durably; with a key used before for the same request, the first job as it was accepted.

        Raises KeyReused when the key belongs to another request, JobErased when its job was erased, KeyInFlight
        when its first request holds it for longer than this session waits for a lock, and QuotaExceeded at a
        limit: the tenant's own, or else that of the `installation`. `connection` makes the acceptance part of
        the caller's own transaction, which survives each of these. It should be in READ COMMITTED, for the
        limits to be exact, and end soon: whoever submits as this user waits for it.
        """
        if connection is None:
            with _refusals():
                row = await _accepted_row(
                    self._database.run, self._database.pool, submission, installation, alone=True
                )
        else:
            row = await accepted_within(self._database.run, connection, submission, installation)
        return _as_accepted(dict(row))

    async def accepted(self, submission: Submission) -> Acceptance | None:
        """The job of just this submission, as it was accepted, if it was."""
        job = await self.read(submission.principal.tenant, submission.id)
        return None if job is None else _as_accepted({**job.model_dump(), "quotas": ()})

    async def read(self, tenant: str, job_id: str, *, user: str | None = None) -> JobRecord | None:
        """A job of this tenant (and of this user, if given)."""
        row = await self._database.run.read_job(self._database.pool, tenant=tenant, id=job_id, user=user)
        return None if row is None else JobRecord.model_validate(dict(row))

    async def standing(self, job_id: str) -> Standing | None:
        """Where a job of any tenant stands: for those who compare, never for callers."""
        row = await self._database.run.standing(self._database.pool, id=job_id)
        return None if row is None else Standing.model_validate(dict(row))

    async def trace(self, job_id: str) -> JobTrace | None:
        """Where a job of any tenant stands among spans."""
        row = await self._database.run.trace_of_job(self._database.pool, id=job_id)
        return None if row is None else JobTrace.model_validate(dict(row))

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


async def accepted_within(
    run: Any, connection: Connection, submission: Submission, installation: Limits
) -> asyncpg.Record:
    """The row of the accepted job, in the transaction that is open on `connection`; it survives a refusal.

    run: the statements. The connection may be anybody's: nothing that is sent needs a codec of ours, and of the
    row only what is no JSON may be relied on. Raises what Jobs.accept raises.
    """
    with _refusals():
        async with connection.transaction():
            return await _accepted_row(run, connection, submission, installation, alone=False)


async def _accepted_row(
    run: Any, executor: Executor, submission: Submission, installation: Limits, *, alone: bool
) -> asyncpg.Record:
    limits = installation.model_dump()
    while True:
        row: asyncpg.Record | None = await run.accept_job(
            executor, **_parameters(submission), **limits, alone=alone
        )
        if row is not None:
            if row["refused"] is not None:
                raise as_refusal(row)
            return row
        principal = submission.principal.model_dump()
        row = await run.find_by_key(executor, **principal, key=submission.key, **limits)
        if row is None:
            continue  # the job of this key expired at this moment: the key is free again
        if row["erased_at"] is not None:
            raise JobErased
        if row["fingerprint"] != submission.fingerprint:
            raise KeyReused
        return row


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _as_in_flight(error) or error from None


_WHEN_ACCEPTED: Final[dict[str, Any]] = {
    "state": JobState.PENDING,
    "step": None,
    "attempt": 0,
    "next_attempt_at": None,
    "failure": None,
    "generation": 0,
    "result": None,
    "tokens_in": 0,
    "tokens_out": 0,
    "usd": Decimal(0),
    "tokens_reserved": 0,
    "usd_reserved": Decimal(0),
    "cancel_requested_at": None,
    "started_at": None,
    "finalized_at": None,
    "content_removed_at": None,
}


def _as_accepted(job: Mapping[str, Any]) -> Acceptance:
    # The answer to a repeated request is the first one; where the job stands by now, its status says.
    return Acceptance.model_validate({**job, **_WHEN_ACCEPTED, "updated_at": job["created_at"]})


def _as_in_flight(error: asyncpg.PostgresError) -> KeyInFlight | None:
    # Of the locks that an acceptance may wait for, only a twin's is met on the way into this table.
    in_flight = isinstance(error, asyncpg.LockNotAvailableError) and "idempotency_keys" in (error.context or "")
    return KeyInFlight() if in_flight else None


_AS_SUBMITTED: Final = (
    *("id", "agent", "policy_version", "origin", "priority", "deadline_seconds", "key", "fingerprint"),
    *("trace_id", "trace_parent", "trace_sampled"),
)


def _parameters(submission: Submission) -> dict[str, Any]:
    return {
        **{name: getattr(submission, name) for name in _AS_SUBMITTED},
        "tenant": submission.principal.tenant,
        "user": submission.principal.user,
        "input": json.dumps({"text": submission.text}, ensure_ascii=False),
        "budget_tokens": submission.budget.tokens,
        "budget_usd": submission.budget.usd,
        "budget_steps": submission.budget.steps,
    }
