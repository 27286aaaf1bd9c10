"""The effect protocol around every call: begin, execute, complete; and on a later attempt, resolve the doubt.

A tool's or a model call's author writes only the call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias, assert_never

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from temporalio import activity

from activities.failures import as_known, chance, exhausted, raised, refused, told
from activities.heartbeat import heartbeating
from activities.inputs import JobRef
from activities.measures import Ended, attempt_ended, wait_begun
from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind, Resolution, resolve, seconds_until_settled
from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.domain.values import checked, require_finite
from agentjobs.domain.waits import judge
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun, CancelRequested, Intent, NotLive, RetriesExhausted
from agentjobs.ledger.ledger import Ledger

ABANDON_SECONDS = 2.0
"""A cancel is not held up by a database that does not answer."""


class Present(Protocol):
    """This worker as the ledger knows it."""

    id: str
    """Under which it begins effects: another one after it was given up and came back."""

    def while_wanted(self, job_id: str, kind: EffectKind) -> AbstractAsyncContextManager[None]:
        """Cuts the block off with CancelRequested as soon as somebody cancels the job."""


@dataclass(frozen=True)
class Reply:
    """What a call came back with."""

    result: BaseModel
    usage: Usage = field(default_factory=Usage)
    model: str | None = None


Call: TypeAlias = "Callable[[Begun, Connection | None], Awaitable[Reply]]"
LookUp: TypeAlias = "Callable[[Begun], Awaitable[Reply | None]]"


@dataclass(frozen=True)
class Work:
    """What the protocol is put around."""

    call: Call
    look_up: LookUp | None = None
    """Asks the destination what became of an earlier attempt's call; reconcilable effects have one."""

    landing_horizon_seconds: float = 0.0
    """How long after an attempt its call may still land, unseen by `look_up`."""

    undone_key: str | None = None
    """For a compensation: the effect that it undoes."""

    elsewhere: Callable[[Begun, JobError], bool] = lambda _begun, _error: False
    """Whether the attempt after this failure asks somebody else, and so need not wait."""


class Executor:
    """Carries out effects for the activities of one worker."""

    def __init__(self, ledger: Ledger, failpoints: Failpoints, worker: Present) -> None:
        self._ledger = ledger
        self._failpoints = failpoints
        self._present = worker

    def intent(
        self,
        step: str,
        job: JobRef,
        *,
        kind: EffectKind,
        name: str,
        effect_class: EffectClass,
        fingerprint: str,
        grant: str | None = None,
        needs_approval: bool = False,
        reserve: Reservation | None = None,
    ) -> Intent:
        """The intent of the activity that is running now."""
        info = activity.info()
        return Intent(
            job_id=job.job_id,
            step=step,
            key=keys.step_key(job.job_id, step),
            kind=kind,
            name=name,
            effect_class=effect_class,
            fingerprint=fingerprint,
            run_id=info.workflow_run_id or info.activity_id,
            attempt=job.tried + info.attempt,
            worker=self._present.id,
            grant=grant,
            needs_approval=needs_approval,
            reserve=reserve or Reservation(),
        )

    async def carry_out(self, intent: Intent, work: Work, *, with_done: bool = False) -> dict[str, Any]:
        """The receipt of the effect: stored by an earlier attempt, or of the call made now.

        Raises ApplicationError, and records the failed attempt first.
        """
        in_time = _Patience.of_this_attempt()
        begun = await self._begin(intent, with_done=with_done)
        if begun.receipt is not None:
            return begun.receipt
        if begun.attempt_id is None:
            raise RuntimeError("an effect without a receipt was begun without an attempt")
        try:
            async with heartbeating(), self._present.while_wanted(intent.job_id, intent.kind):
                receipt = await self._execute(intent, begun, begun.attempt_id, work, in_time)
        except CancelRequested as error:
            await self._abandoned(intent, begun.attempt_id)
            raise told(error) from None
        except asyncio.CancelledError:
            # By Temporal, or because this worker stops. The call was cut off: its effect stays in doubt.
            await asyncio.shield(self._abandoned(intent, begun.attempt_id))
            raise
        except Exception as error:
            raise await self._failed(as_known(error), intent, begun, begun.attempt_id, work) from None
        attempt_ended(intent.kind, Ended.SUCCEEDED)
        return receipt

    async def _begin(self, intent: Intent, *, with_done: bool) -> Begun:
        try:
            await self._failpoints.reach("effect.before_begin")
            begun = await self._ledger.effects.begin(intent, with_done=with_done)
            await self._failpoints.reach("effect.after_begin")
        except (NotLive, CancelRequested) as error:
            raise told(error) from None
        except RetriesExhausted:
            raise exhausted(intent.step) from None
        except Exception as error:
            raise refused(error, intent.step) from None
        return begun

    async def _execute(
        self, intent: Intent, begun: Begun, attempt_id: int, work: Work, in_time: _Patience
    ) -> dict[str, Any]:
        if intent.effect_class is EffectClass.TRANSACTIONAL:
            return await self._in_one_transaction(intent, begun, attempt_id, work)
        reply = await self._resolved(intent, begun, work, in_time)
        if reply is None:
            await self._failpoints.reach("effect.before_call")
            in_time.require()
            reply = await _before_deadline(work.call(begun, None), begun.remaining_seconds)
            await self._failpoints.reach("effect.after_call")
        return await self._completed(intent, attempt_id, reply, work.undone_key)

    async def _resolved(self, intent: Intent, begun: Begun, work: Work, in_time: _Patience) -> Reply | None:
        """What an earlier attempt has already done, or None: do it now."""
        match resolve(intent.effect_class, in_doubt=begun.in_doubt):
            case Resolution.EXECUTE:
                return None
            case Resolution.LOOK_UP_FIRST if work.look_up is not None:
                return await self._looked_up(intent, begun, work, work.look_up, in_time)
            case Resolution.LOOK_UP_FIRST | Resolution.ASK_A_PERSON:
                raise PermanentError(
                    Category.OUTCOME_UNKNOWN, "an earlier attempt may have had this effect: a person decides"
                )
            case unreachable:
                assert_never(unreachable)

    async def _looked_up(
        self, intent: Intent, begun: Begun, work: Work, look_up: LookUp, in_time: _Patience
    ) -> Reply | None:
        found = await look_up(begun)
        if found is not None:
            return found
        require_settled(
            seconds_until_settled(in_time.limit_seconds, work.landing_horizon_seconds, begun.since_sent_seconds)
        )
        if not await self._ledger.effects.send_again(intent.key, begun.sent_at):
            raise _overtaken()
        return None

    async def _in_one_transaction(
        self, intent: Intent, begun: Begun, attempt_id: int, work: Work
    ) -> dict[str, Any]:
        async with self._ledger.database.transaction() as connection:
            receipt = await self._ledger.effects.lock(connection, intent.key)
            if receipt is not None:  # another live attempt was first
                return receipt
            reply = await work.call(begun, connection)
            result = _as_result(reply.result)
            await self._failpoints.reach("tool.in_transaction")
            if not await self._ledger.effects.complete(
                intent, attempt_id, result, undone_key=work.undone_key, connection=connection
            ):
                raise _overtaken()  # and so roll back
        await self._failpoints.reach("tool.after_commit")
        return result

    async def _completed(
        self, intent: Intent, attempt_id: int, reply: Reply, undone_key: str | None
    ) -> dict[str, Any]:
        result = _as_result(reply.result)
        await self._failpoints.reach("effect.before_complete")
        first = await self._ledger.effects.complete(
            intent, attempt_id, result, usage=reply.usage, model=reply.model, undone_key=undone_key
        )
        await self._failpoints.reach("effect.after_complete")
        if first:
            return result
        stored = await self._ledger.effects.read(intent.key)
        if stored is None or stored.result is None:
            raise _overtaken()
        return stored.result

    async def _abandoned(self, intent: Intent, attempt_id: int) -> None:
        attempt_ended(intent.kind, Ended.ABANDONED)
        try:
            async with asyncio.timeout(ABANDON_SECONDS):
                await self._ledger.effects.abandon_attempt(attempt_id)
        except Exception as error:
            # Only the record of the attempt is less exact: it is closed as crashed by the next one's begin.
            as_known(error)

    async def _failed(
        self, error: JobError, intent: Intent, begun: Begun, attempt_id: int, work: Work
    ) -> Exception:
        verdict = judge(
            error,
            intent.step,
            kind=intent.kind,
            tried=begun.tried,
            deadline_at=_deadline(intent, begun),
            now=datetime.now(UTC),
            chance=chance(),
            elsewhere=work.elsewhere(begun, error),
        )
        attempt_ended(intent.kind, Ended.FAILED, error.category)
        if verdict.wait_seconds is not None:
            wait_begun(error.category, verdict.wait_seconds)
        try:
            await self._ledger.effects.fail(
                attempt_id,
                verdict.failure,
                wait_seconds=verdict.wait_seconds,
                release=_nothing_happened(error, intent),
                paid=error.paid,
            )
        except Exception as second:
            # The first failure is what counts; the attempt is closed as crashed by the next one's begin.
            as_known(second)
        return raised(verdict)


def require_settled(in_seconds: float) -> None:
    """Raises RetryableError while an earlier attempt's call may still land at its destination."""
    if in_seconds > 0:
        raise RetryableError(
            Category.UNAVAILABLE,
            "an earlier attempt's call may still land at its destination",
            retry_after_seconds=in_seconds,
        )


class _Patience:
    """How long this attempt may still send. A worker that was frozen past its timeout must find out by itself:
    meanwhile another attempt may be under way. (The monotonic clock runs on while a process is stopped.)
    """

    def __init__(self, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self._began = time.monotonic()

    @classmethod
    def of_this_attempt(cls) -> _Patience:
        timeout = activity.info().start_to_close_timeout
        return cls(timeout.total_seconds() if timeout else float("inf"))

    def require(self) -> None:
        """Raises RetryableError when the attempt is over."""
        if time.monotonic() - self._began >= self.limit_seconds:
            raise RetryableError(
                Category.TIMEOUT, "the attempt was over before it could call", nothing_happened=True
            )


async def _before_deadline(call: Awaitable[Reply], remaining_seconds: float) -> Reply:
    limit = asyncio.timeout(remaining_seconds)
    try:
        async with limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise PermanentError(Category.DEADLINE_EXCEEDED, "the job's deadline passed during the call") from None
        raise


def _overtaken() -> RetryableError:
    return RetryableError(Category.UNAVAILABLE, "another attempt has taken this step over")


def _as_result(result: BaseModel) -> dict[str, Any]:
    require_finite(result.model_dump())  # pydantic's JSON would make null of NaN, which no reader can take back
    try:
        value = checked(result.model_dump(mode="json"))
    except (PydanticSerializationError, ValueError):  # bytes that are no text raise the latter
        raise PermanentError(Category.BAD_OUTPUT, "a result has no JSON form") from None
    if not isinstance(value, dict):
        raise PermanentError(Category.BAD_OUTPUT, "a result is no object")
    return value


def _deadline(intent: Intent, begun: Begun) -> datetime | None:
    # A compensation must not be given up because the job it cleans up after ran out of time.
    return None if intent.kind is EffectKind.UNDO else begun.job.deadline_at


def _nothing_happened(error: JobError, intent: Intent) -> bool:
    if intent.effect_class is EffectClass.TRANSACTIONAL:
        return True  # rolled back; or committed after all, and then the effect is completed, not begun
    return error.nothing_happened
