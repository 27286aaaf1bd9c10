"""The fast lane: a short step is carried out within the workflow task; the server hears of it when the task ends.

Only its first try. What fails there in a way that may pass is done again as an activity, with all that one has:
its waits, its heartbeats, its takeover. To the ledger both are attempts (docs/adr/0019-fast-lane.md).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError
from temporalio.workflow import ActivityCancellationType

from activities.inputs import JobRef
from workflows.options import Options
from workflows.verdicts import Onward, onward

G = TypeVar("G", bound=JobRef)
R = TypeVar("R")

SHORT: Final = timedelta(seconds=10)
"""Longer than the database is waited for: a step that takes so long is no short one."""

_ONCE: Final = RetryPolicy(maximum_attempts=1)


@dataclass(frozen=True)
class Step:
    """What the Temporal UI shows of an activity beside its type."""

    activity_id: str
    summary: str


class Lanes:
    """One job's lanes. fast: whether it has the fast one."""

    def __init__(self, *, fast: bool) -> None:
        self._fast = fast
        self.models_take_time = False
        """Known as soon as one has refused the fast lane."""

    async def carried_out(
        self,
        activity: Callable[[Any, G], Coroutine[Any, Any, R]],
        given: G,
        step: Step,
        options: Callable[[], Options],
        *,
        short: bool = True,
    ) -> R:
        """The activity's result. short: whether the fast lane is tried first. options: of the regular lane, asked
        for when it is taken. Raises ActivityError.
        """
        if self._fast and short:
            try:
                return await self._within_task(activity, given, step)
            except FailureError as error:
                # What the step raised comes bare; what became of it otherwise, as of an activity.
                cause = error.cause if isinstance(error, ActivityError) else error
                further = onward(cause, cancelled=workflow.cancellation_reason() is not None)
                if further is None:
                    raise _of_activity(step) from cause
            given = await self._after(further, given, step)
        return await workflow.execute_activity_method(
            activity, given, activity_id=step.activity_id, summary=step.summary, **options()
        )

    async def _within_task(self, activity: Callable[[Any, G], Coroutine[Any, Any, R]], given: G, step: Step) -> R:
        return await workflow.execute_local_activity_method(
            activity,
            given,
            activity_id=step.activity_id,
            summary=step.summary,
            start_to_close_timeout=SHORT,
            retry_policy=_ONCE,
            # The truth about a step is known only when it has ended.
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )

    async def _after(self, further: Onward, given: G, step: Step) -> G:
        if further.was_refused:
            self.models_take_time = True
            return given
        if further.wait > timedelta():
            await workflow.sleep(further.wait, summary=f"{step.activity_id} waits")
        return given.model_copy(update={"tried": 1})


def _of_activity(step: Step) -> ActivityError:
    return ActivityError(
        "a short step failed",
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id=step.activity_id,
        retry_state=None,
    )
