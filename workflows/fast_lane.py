"""The fast lane: short steps are carried out within the workflow task; the server hears of them when it ends.

Only their first try. What fails there in a way that may pass is done again as an activity, with all that one has:
its waits, its heartbeats, its takeover. To the ledger both are attempts (docs/adr/0019-fast-lane.md).
"""

from datetime import timedelta
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from activities.inputs import JobStart, ShortSteps, ShortStepsDone, Stopped
from activities.short_steps import ShortStepRuns
from agentjobs.domain import decisions, keys
from agentjobs.domain.decisions import Action, Progress

SHORT: Final = timedelta(seconds=20)
"""Of some steps together. The database is waited for for ten: what takes so long is no short step."""

_ONCE: Final = RetryPolicy(maximum_attempts=1)


class FastLane:
    """One job's way through it."""

    def __init__(self, start: JobStart) -> None:
        self._ref = start.model_dump(include={"job_id", "agent", "policy_version"})
        self._max_steps = start.max_steps
        self._is_open = start.fast_lane
        self._rules_answer = True
        self._not_done: str | None = None

    def takes(self, action: Action) -> bool:
        """Whether to try it there first."""
        if not self._is_open or self.tries_of(_step_of(action)):
            return False
        match action:
            case decisions.MakePlan() | decisions.CallModel() | decisions.WriteAnswer():
                return self._rules_answer
            case decisions.RunTool(wanted=wanted):
                return wanted.short
            case decisions.Finish():
                return True
            case _:
                return False

    def tries_of(self, step: str | None) -> int:
        """How often this step was tried there, as far as is known."""
        return int(step is not None and step == self._not_done)

    async def go_on(self, action: Action, progress: Progress, generation: int) -> ShortStepsDone:
        """Carry short steps out, from this action on. Raises ActivityError when they were cut off by a cancel."""
        first = _step_of(action)
        given = ShortSteps(**self._ref, progress=progress, max_steps=self._max_steps, generation=generation)
        try:
            done = await workflow.execute_local_activity_method(
                ShortStepRuns.short_steps,
                given,
                activity_id=first,
                summary=_summary(action),
                start_to_close_timeout=SHORT,
                retry_policy=_ONCE,
                # The truth about a step is known only when it has ended.
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
        except FailureError as error:
            if is_cancelled_exception(error) and workflow.cancellation_reason() is not None:
                raise
            # It hung, or could not begin. What was done is met again; by which step it was lost, nobody knows.
            self._is_open, self._not_done = False, first
            return ShortStepsDone(steps=(), progress=progress)
        if not done.steps and done.stopped is None:
            self._rules_answer = False
        return done

    async def wait_or_raise(self, stopped: Stopped) -> None:
        """Until the step that could not be done may be tried as an activity. Raises ActivityError if never."""
        if stopped.wait_seconds is None:
            _raise(stopped)
        self._not_done = stopped.step
        if stopped.wait_seconds > 0:
            await workflow.sleep(timedelta(seconds=stopped.wait_seconds), summary=f"{stopped.step} waits")


def _step_of(action: Action) -> str | None:
    match action:
        case decisions.MakePlan():
            return keys.PLAN
        case decisions.CallModel(step=step):
            return keys.model_step(step)
        case decisions.RunTool(step=step, wanted=wanted):
            return keys.tool_step(step, wanted.tool)
        case decisions.WriteAnswer():
            return keys.ANSWER
        case decisions.Finish():
            return keys.OUTCOME
        case _:
            return None


def _summary(action: Action) -> str:
    if isinstance(action, decisions.Finish):
        return f"into the ledger: {action.state}"
    return f"short steps, from {_step_of(action)} on"


def _raise(stopped: Stopped) -> NoReturn:
    raise ActivityError(
        "a short step failed",
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id=stopped.step,
        retry_state=None,
    ) from stopped.error
