"""The effect protocol: begin, complete, fail. Each is one statement."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Category, Failure, KeyConflict, PermanentError, RetryableError
from agentjobs.domain.job import Job, Principal
from agentjobs.domain.states import JobState
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import EffectRecord


class NotLive(Exception):
    """The job is over or was buried: this attempt must not act. The state says which."""

    def __init__(self, state: JobState) -> None:
        super().__init__(f"the job is {state}")
        self.state = state


class CancelRequested(Exception):
    """Somebody asked to cancel the job: no further step begins."""


class Intent(BaseModel):
    """What an attempt is about to do."""

    model_config = ConfigDict(frozen=True)

    job_id: str
    step: str
    key: str
    kind: EffectKind
    name: str
    effect_class: EffectClass
    fingerprint: str
    run_id: str
    attempt: int
    worker: str
    grant: str | None = None
    reserve: Reservation = Reservation()


class DoneStep(BaseModel):
    """An earlier completed step of the job, with its stored result."""

    step: str
    kind: EffectKind
    name: str
    result: dict[str, Any]


class Begun(BaseModel):
    """The answer to an intent: go on, or (with `receipt`) it is done already."""

    model_config = ConfigDict(frozen=True)

    job: Job
    attempt_id: int | None
    in_doubt: bool
    since_sent_seconds: float
    """How long ago the last call that may have had the effect could begin; 0 when this attempt is the first."""

    destination_key: str
    """The key that the destination sees: the step key, and another one each time that a person says "again"."""

    receipt: dict[str, Any] | None
    done: tuple[DoneStep, ...]
    remaining_seconds: float


class Effects:
    """The one mechanism that every tool and every model call goes through."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, intent: Intent, *, with_done: bool = False) -> Begun:
        """Record the intent durably, or learn that the effect is done.

        Raises NotLive, CancelRequested, KeyConflict, and PermanentError for a missing grant, an exceeded
        budget or a passed deadline.
        """
        row = await self._database.run.begin_effect(
            self._database.pool,
            **intent.model_dump(exclude={"reserve"}),
            reserve_tokens=intent.reserve.tokens,
            reserve_usd=intent.reserve.usd,
            with_done=with_done,
        )
        if row is None:
            raise PermanentError(Category.NOT_FOUND, "the ledger has no such job")
        _refuse(row, intent)
        return _begun(row, intent)

    async def send_again(self, key: str) -> None:
        """An effect in doubt is about to be called again: the earlier call cannot land any more."""
        await self._database.run.send_again(self._database.pool, key=key)

    async def lock(self, connection: Connection, key: str) -> dict[str, Any] | None:
        """Lock the effect in the caller's transaction; its receipt if another attempt has completed it.

        Raises PermanentError when the effect was abandoned meanwhile: this attempt came too late.
        """
        row = await self._database.run.lock_effect(connection, key=key)
        if row["state"] == EffectState.ABANDONED:
            raise PermanentError(Category.OUTCOME_UNKNOWN, "this attempt was given up before it completed")
        receipt: dict[str, Any] | None = row["result"]
        return receipt

    async def complete(
        self,
        intent: Intent,
        attempt_id: int,
        result: dict[str, Any],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        undone_key: str | None = None,
        connection: Connection | None = None,
    ) -> bool:
        """Store the receipt. False when another attempt was first (then its receipt holds)."""
        usage = usage or Usage()
        row = await self._database.run.complete_effect(
            connection or self._database.pool,
            job_id=intent.job_id,
            key=intent.key,
            worker=intent.worker,
            attempt_id=attempt_id,
            result=result,
            model=model,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            usd=usage.usd,
            undone_key=undone_key,
        )
        return bool(row["completed"])

    async def read(self, key: str) -> EffectRecord | None:
        """The effect as it stands."""
        row = await self._database.run.read_effect(self._database.pool, key=key)
        return None if row is None else EffectRecord.model_validate(dict(row))

    async def fail(self, attempt_id: int, failure: Failure, *, wait_seconds: float | None, release: bool) -> None:
        """Record a failed attempt; with `wait_seconds` the job goes to retry_wait until then.

        `release`: the call certainly had no effect and no cost.
        """
        await self._database.run.fail_attempt(
            self._database.pool,
            attempt_id=attempt_id,
            category=failure.category,
            message=failure.message,
            failure=failure.model_dump(mode="json"),
            wait_seconds=wait_seconds,
            release=release,
        )

    async def adopt(self, key: str, result: dict[str, Any]) -> None:
        """An effect in doubt was found at its destination: this is its receipt."""
        await self._database.run.adopt_effect(self._database.pool, key=key, result=result)

    async def give_up(self, key: str) -> None:
        """An effect in doubt is not at its destination, and cannot come there any more."""
        await self._database.run.give_up_effect(self._database.pool, key=key)

    async def abandon(self, key: str) -> None:
        """Give up an effect that certainly was not done, so that a late attempt cannot do it any more.

        One in doubt at another system stays in doubt; one that is completed stays completed.
        """
        await self._database.run.abandon_effect(self._database.pool, key=key)


def _refuse(row: Any, intent: Intent) -> None:
    match row["verdict"]:
        case "not_live":
            raise NotLive(JobState(row["job_state"]))
        case "cancel_requested":
            raise CancelRequested
        case "fenced":
            raise RetryableError(Category.UNAVAILABLE, "this worker was given up", nothing_happened=True)
        case "access_denied":
            raise PermanentError(Category.ACCESS_DENIED, f"the user has no grant for {intent.grant}")
        case "deadline_exceeded":
            raise PermanentError(Category.DEADLINE_EXCEEDED, "the job's deadline has passed")
        case "budget_exceeded":
            raise PermanentError(Category.BUDGET_EXCEEDED, "the next call does not fit the job's budget")
    if row["effect_state"] is None:
        raise KeyConflict(recorded=row["recorded_fingerprint"] or "unknown", given=intent.fingerprint)
    if row["effect_state"] == EffectState.ABANDONED:
        raise PermanentError(Category.OUTCOME_UNKNOWN, "this step was given up before it completed")


def _begun(row: Any, intent: Intent) -> Begun:
    return Begun(
        job=Job(
            id=intent.job_id,
            principal=Principal(tenant=row["tenant"], user=row["user"]),
            agent=row["agent"],
            policy_version=row["policy_version"],
            text=row["input"]["text"],
            deadline_at=row["deadline_at"],
        ),
        attempt_id=row["attempt_id"],
        in_doubt=row["in_doubt"],
        since_sent_seconds=row["since_sent"].total_seconds(),
        destination_key=keys.destination_key(intent.key, row["generation"]),
        receipt=row["result"],
        done=tuple(DoneStep.model_validate(step) for step in row["done"] or ()),
        remaining_seconds=max(row["remaining"].total_seconds(), 0.0),
    )
