"""The effect protocol around every call: begin, execute, complete; and on a later attempt, resolve the doubt.

A tool's or a model call's author writes only the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, assert_never

from pydantic import BaseModel
from temporalio import activity

from activities.failures import as_known, judge, refused, told
from activities.heartbeat import heartbeating
from agentjobs.domain import keys
from agentjobs.domain.budget import Reservation, Usage
from agentjobs.domain.effects import EffectClass, EffectKind, Resolution, resolve
from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.domain.values import checked
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun, CancelRequested, Intent, NotLive
from agentjobs.ledger.ledger import Ledger


@dataclass(frozen=True)
class Reply:
    """What a call came back with."""

    result: BaseModel
    usage: Usage = field(default_factory=Usage)
    model: str | None = None


Call: TypeAlias = "Callable[[Begun, Connection | None], Awaitable[Reply]]"


class Executor:
    """Carries out effects for the activities of one worker."""

    def __init__(self, ledger: Ledger, failpoints: Failpoints, worker: str) -> None:
        self._ledger = ledger
        self._failpoints = failpoints
        self._worker = worker

    def intent(
        self,
        step: str,
        job_id: str,
        *,
        kind: EffectKind,
        name: str,
        effect_class: EffectClass,
        arguments: Any,
        grant: str | None = None,
        reserve: Reservation | None = None,
    ) -> Intent:
        """The intent of the activity that is running now."""
        info = activity.info()
        return Intent(
            job_id=job_id,
            step=step,
            key=keys.step_key(job_id, step),
            kind=kind,
            name=name,
            effect_class=effect_class,
            fingerprint=keys.fingerprint({"name": name, "arguments": arguments}),
            run_id=info.workflow_run_id or info.activity_id,
            attempt=info.attempt,
            worker=self._worker,
            grant=grant,
            reserve=reserve or Reservation(),
        )

    async def carry_out(
        self, intent: Intent, call: Call, *, with_done: bool = False, undone_key: str | None = None
    ) -> dict[str, Any]:
        """The receipt of the effect: stored by an earlier attempt, or of the call made now.

        Raises ApplicationError, and records the failed attempt first.
        """
        begun = await self._begin(intent, with_done=with_done)
        if begun.receipt is not None:
            return begun.receipt
        if begun.attempt_id is None:
            raise RuntimeError("an effect without a receipt was begun without an attempt")
        try:
            async with heartbeating():
                return await self._execute(intent, begun, begun.attempt_id, call, undone_key)
        except Exception as error:  # a cancellation passes: the call was cut off, the effect stays in doubt
            raise await self._failed(as_known(error), intent, begun, begun.attempt_id) from None

    async def _begin(self, intent: Intent, *, with_done: bool) -> Begun:
        try:
            await self._failpoints.reach("effect.before_begin")
            begun = await self._ledger.effects.begin(intent, with_done=with_done)
            await self._failpoints.reach("effect.after_begin")
        except (NotLive, CancelRequested) as error:
            raise told(error) from None
        except Exception as error:
            raise refused(error, intent.step) from None
        return begun

    async def _execute(
        self, intent: Intent, begun: Begun, attempt_id: int, call: Call, undone_key: str | None
    ) -> dict[str, Any]:
        match resolve(intent.effect_class, in_doubt=begun.in_doubt):
            case Resolution.EXECUTE:
                pass
            case Resolution.LOOK_UP_FIRST | Resolution.ASK_A_PERSON:
                # No tracker of this release is reconcilable; until one can be asked, a person is.
                raise PermanentError(
                    Category.OUTCOME_UNKNOWN, "an earlier attempt may have had this effect: a person decides"
                )
            case unreachable:
                assert_never(unreachable)
        if intent.effect_class is EffectClass.TRANSACTIONAL:
            return await self._in_one_transaction(intent, begun, attempt_id, call, undone_key)
        return await self._call_then_complete(intent, begun, attempt_id, call)

    async def _in_one_transaction(
        self, intent: Intent, begun: Begun, attempt_id: int, call: Call, undone_key: str | None
    ) -> dict[str, Any]:
        async with self._ledger.database.transaction() as connection:
            receipt = await self._ledger.effects.lock(connection, intent.key)
            if receipt is not None:  # another live attempt was first
                return receipt
            reply = await call(begun, connection)
            result = _as_result(reply.result)
            await self._failpoints.reach("tool.in_transaction")
            await self._ledger.effects.complete(
                intent, attempt_id, result, undone_key=undone_key, connection=connection
            )
        await self._failpoints.reach("tool.after_commit")
        return result

    async def _call_then_complete(
        self, intent: Intent, begun: Begun, attempt_id: int, call: Call
    ) -> dict[str, Any]:
        reply = await _before_deadline(call(begun, None), begun.remaining_seconds)
        result = _as_result(reply.result)
        await self._failpoints.reach("effect.before_complete")
        first = await self._ledger.effects.complete(
            intent, attempt_id, result, usage=reply.usage, model=reply.model
        )
        await self._failpoints.reach("effect.after_complete")
        if first:
            return result
        stored = await self._ledger.effects.read(intent.key)
        return result if stored is None or stored.result is None else stored.result

    async def _failed(self, error: JobError, intent: Intent, begun: Begun, attempt_id: int) -> Exception:
        verdict = judge(error, intent.step, deadline_at=_deadline(intent, begun), now=datetime.now(UTC))
        try:
            await self._ledger.effects.fail(
                attempt_id,
                verdict.failure,
                wait_seconds=verdict.wait_seconds,
                release=_nothing_happened(error, intent),
            )
        except Exception as second:
            # The first failure is what counts; the attempt is closed as crashed by the next one's begin.
            as_known(second)
        return verdict.raised()


async def _before_deadline(call: Awaitable[Reply], remaining_seconds: float) -> Reply:
    limit = asyncio.timeout(remaining_seconds)
    try:
        async with limit:
            return await call
    except TimeoutError:
        if limit.expired():
            raise PermanentError(Category.DEADLINE_EXCEEDED, "the job's deadline passed during the call") from None
        raise


def _as_result(result: BaseModel) -> dict[str, Any]:
    value = checked(result.model_dump(mode="json"))
    if not isinstance(value, dict):
        raise PermanentError(Category.BAD_OUTPUT, "a result is no object")
    return value


def _deadline(intent: Intent, begun: Begun) -> datetime | None:
    # A compensation must not be given up because the job it cleans up after ran out of time.
    return None if intent.kind is EffectKind.UNDO else begun.job.deadline_at


def _nothing_happened(error: JobError, intent: Intent) -> bool:
    if intent.effect_class is EffectClass.TRANSACTIONAL:
        return True  # rolled back; or committed after all, and then the effect is completed, not begun
    return isinstance(error, RetryableError) and error.nothing_happened
