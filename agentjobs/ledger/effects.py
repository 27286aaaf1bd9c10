"""The effect protocol: begin, complete, fail. Each is one statement."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Category, Failure, KeyConflict, PermanentError, RetryableError
from agentjobs.domain.job import Job, Principal
from agentjobs.domain.states import JobState
from agentjobs.domain.waits import ATTEMPT_LIMITS, Tried
from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import EffectRecord


class NotLive(Exception):
    """The job is over or was buried: this attempt must not act. The state says which."""

    def __init__(self, state: JobState) -> None:
        super().__init__(f"the job is {state}")
        self.state = state


class CancelRequested(Exception):
    """Somebody asked to cancel the job: no further step begins."""


class RetriesExhausted(Exception):
    """Attempts of this step crashed so often that none is begun any more: it may be what makes workers crash."""


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
    needs_approval: bool = False
    reserve: Reservation = Reservation()

    @property
    def attempt_limit(self) -> int:
        """How many attempts may fail or crash."""
        return ATTEMPT_LIMITS[self.kind]


class FailedAttempt(BaseModel):
    """An earlier failed attempt of the same step in the same run."""

    model: str | None
    category: Category
    message: str | None


class PendingResponse(BaseModel):
    """Where a provider writes the step's answer, or keeps it, since an earlier attempt."""

    id: str
    model: str


class DoneStep(BaseModel):
    """An earlier completed step of the job, with its stored result."""

    step: str
    kind: EffectKind
    name: str
    result: dict[str, Any]


class DoneOrBegun(BaseModel):
    """A tool's effect that there is, or may be."""

    step: str
    tool: str


class Begun(BaseModel):
    """The answer to an intent: go on, or (with `receipt`) it is done already."""

    model_config = ConfigDict(frozen=True)

    job: Job
    attempt_id: int | None
    in_doubt: bool
    sent_at: datetime
    """When the last call that may have had the effect could begin; now, when this attempt is the first."""

    since_sent_seconds: float
    """How long ago that was."""

    destination_key: str
    """The key that the destination sees: the step key, and another one each time that a person says "again"."""

    receipt: dict[str, Any] | None
    done: tuple[DoneStep, ...]
    remaining_seconds: float
    tried: Tried = Tried()
    failures: tuple[FailedAttempt, ...] = ()
    """Of a model call: the latest ones, oldest first."""

    response: PendingResponse | None = None
    budgeted: bool = False
    """Of a model call: whether the tenant has a limit for the month."""

    trace_id: str


class Effects:
    """The one mechanism that every tool and every model call goes through."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, intent: Intent, *, with_done: bool = False) -> Begun:
        """Record the intent durably, or learn that the effect is done.

        Raises NotLive, CancelRequested, RetriesExhausted, KeyConflict, and PermanentError for a missing grant or
        approval, an exceeded budget or a passed deadline.
        """
        row = await self._database.run.begin_effect(
            self._database.pool,
            **intent.model_dump(exclude={"reserve"}),
            attempt_limit=intent.attempt_limit,
            reserve_tokens=intent.reserve.tokens,
            reserve_usd=intent.reserve.usd,
            with_done=with_done,
        )
        if row is None:
            raise PermanentError(Category.NOT_FOUND, "the ledger has no such job")
        _refuse(row, intent)
        return _begun(row, intent)

    async def send_again(self, key: str, sent_at: datetime) -> bool:
        """An effect in doubt is about to be called again: the call of `sent_at` cannot land any more.

        False when it must not be: meanwhile another attempt sends, or has completed it, or it was given up.
        """
        row = await self._database.run.send_again(self._database.pool, key=key, sent_at=sent_at)
        return row is not None

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
            fingerprint=intent.fingerprint,
            worker=intent.worker,
            attempt_id=attempt_id,
            result=result,
            model=model,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            usd=usage.usd,
            costs=intent.kind is EffectKind.MODEL,
            undone_key=undone_key,
        )
        return bool(row["completed"])

    async def read(self, key: str) -> EffectRecord | None:
        """The effect as it stands."""
        row = await self._database.run.read_effect(self._database.pool, key=key)
        return None if row is None else EffectRecord.model_validate(dict(row))

    async def fail(
        self,
        attempt_id: int,
        failure: Failure,
        *,
        wait_seconds: float | None,
        release: bool,
        paid: Usage | None = None,
    ) -> None:
        """Record a failed attempt; with `wait_seconds` the job goes to retry_wait until then.

        `release`: the call certainly had no effect and no cost. `paid`: what it cost, where that is known. Without
        either its reservation stays held.
        """
        usage = paid or Usage()
        await self._database.run.fail_attempt(
            self._database.pool,
            attempt_id=attempt_id,
            category=failure.category,
            message=failure.message,
            failure=failure.model_dump(mode="json"),
            wait_seconds=wait_seconds,
            release=release,
            settle=release or paid is not None,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            usd=usage.usd,
        )

    async def abandon_attempt(self, attempt_id: int) -> None:
        """The attempt was cut off on purpose: by a cancel, or because its worker stops."""
        await self._database.run.abandon_attempt(self._database.pool, attempt_id=attempt_id)

    async def remember_response(self, attempt_id: int, *, model: str, response_id: str) -> None:
        """The provider writes the answer under this id: a later attempt fetches it, and pays nothing again.

        Raises RetryableError when the attempt no longer counts.
        """
        row = await self._database.run.remember_response(
            self._database.pool, attempt_id=attempt_id, model=model, response_id=response_id
        )
        if row is None:
            raise RetryableError(Category.UNAVAILABLE, "another attempt has taken this step over")

    async def write_text(self, intent: Intent, attempt_id: int, text: str) -> None:
        """A piece of the answer, into the job's events; nothing when the attempt no longer counts."""
        await self._database.run.write_text(
            self._database.pool,
            job_id=intent.job_id,
            attempt_id=attempt_id,
            step=intent.step,
            attempt=intent.attempt,
            text=text,
        )

    async def adopt(self, key: str, result: dict[str, Any]) -> None:
        """An effect in doubt was found at its destination: this is its receipt."""
        await self._database.run.adopt_effect(self._database.pool, key=key, result=result)

    async def give_up(self, key: str, sent_at: datetime) -> bool:
        """An effect in doubt is not at its destination, and the call of `sent_at` cannot come there any more.

        False when it is no longer in that doubt: it was sent again, completed, or released.
        """
        row = await self._database.run.give_up_effect(self._database.pool, key=key, sent_at=sent_at)
        return row is not None

    async def close_to_steps(self, job_id: str) -> tuple[DoneOrBegun, ...]:
        """No step of the job begins any more. Its tools' effects that were begun or done, oldest first."""
        async with self._database.transaction() as connection:
            await self._database.run.close_to_steps(connection, job_id=job_id)
            rows = [row async for row in self._database.run.effects_to_undo(connection, job_id=job_id)]
        return tuple(DoneOrBegun(step=row["step"], tool=row["name"]) for row in rows)

    async def abandon(self, job_id: str, key: str) -> None:
        """Give up an effect that certainly was not done, so that a late attempt cannot do it any more.

        One in doubt at another system stays in doubt; one that is completed stays completed. One that was never
        begun will not be: no step of the job begins any more.
        """
        async with self._database.transaction() as connection:
            await self._database.run.close_to_steps(connection, job_id=job_id)
            await self._database.run.abandon_effect(connection, key=key)


def _refuse(row: Any, intent: Intent) -> None:
    match row["verdict"]:
        case "not_live":
            raise NotLive(JobState(row["job_state"]))
        case "cancel_requested":
            raise CancelRequested
        case "retries_exhausted":
            raise RetriesExhausted
        case "fenced":
            raise RetryableError(Category.UNAVAILABLE, "this worker was given up", nothing_happened=True)
        case "go":
            _refuse_begun(row, intent)
        case _:
            raise _forbidden(row, intent)


def _refuse_begun(row: Any, intent: Intent) -> None:
    if row["effect_state"] is None:
        raise KeyConflict(recorded=row["recorded_fingerprint"] or "unknown", given=intent.fingerprint)
    if row["effect_state"] == EffectState.ABANDONED:
        raise PermanentError(Category.OUTCOME_UNKNOWN, "this step was given up before it completed")


def _forbidden(row: Any, intent: Intent) -> PermanentError:
    not_approved = f"{intent.name} needs an approval of just this call, given in time and not used before"
    refusals = {
        "access_denied": (Category.ACCESS_DENIED, f"the user has no grant for {intent.grant}"),
        "not_approved": (Category.ACCESS_DENIED, not_approved),
        "deadline_exceeded": (Category.DEADLINE_EXCEEDED, "the job's deadline has passed"),
        "budget_exceeded": (Category.BUDGET_EXCEEDED, _too_dear(row, intent)),
        "tenant_budget_exceeded": (Category.BUDGET_EXCEEDED, _too_dear_for_tenant(row, intent)),
    }
    return PermanentError(*refusals[row["verdict"]])


def _too_dear(row: Any, intent: Intent) -> str:
    limits = (
        (row["tokens_used"], row["budget_tokens"], intent.reserve.tokens, "tokens"),
        (row["usd_used"], row["budget_usd"], intent.reserve.usd, "USD"),
    )
    return f"the next call does not fit the job's budget: {_beyond(limits)}"


def _too_dear_for_tenant(row: Any, intent: Intent) -> str:
    limits = (
        (row["month_tokens"], row["monthly_tokens"], intent.reserve.tokens, "tokens"),
        (row["month_usd"], row["monthly_usd"], intent.reserve.usd, "USD"),
    )
    return (
        "the next call does not fit what the tenant may spend this month (an admin raises it with "
        f"`starter.py budget set`): {_beyond(limits)}"
    )


def _beyond(limits: Any) -> str:
    return "; ".join(
        f"{used} of {limit} {unit} are spent or held back, the next call may take {wanted}"
        for used, limit, wanted, unit in limits
        if limit is not None and used + wanted > limit
    )


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
        sent_at=row["sent_at"],
        since_sent_seconds=row["since_sent"].total_seconds(),
        destination_key=keys.destination_key(intent.key, row["generation"]),
        receipt=row["result"],
        done=tuple(DoneStep.model_validate(step) for step in row["done"] or ()),
        remaining_seconds=max(row["remaining"].total_seconds(), 0.0),
        tried=Tried(counted=row["counted"], rate_limited=row["rate_limited"], malformed=row["malformed"]),
        failures=tuple(FailedAttempt.model_validate(failure) for failure in row["failures"] or ()),
        response=_response(row),
        budgeted=row["monthly_tokens"] is not None or row["monthly_usd"] is not None,
        trace_id=row["trace_id"],
    )


def _response(row: Any) -> PendingResponse | None:
    if row["response_id"] is None:
        return None
    return PendingResponse(id=row["response_id"], model=row["response_model"])
