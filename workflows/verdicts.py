"""What a failed activity means for the job. Only here are Temporal's error classes read."""

from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutError, TimeoutType

from agentjobs.domain.failures import Category, Failure, failure

# The server gave up although the activity would have gone on.
_GAVE_UP: dict[RetryState | None, Category] = {
    RetryState.TIMEOUT: Category.DEADLINE_EXCEEDED,
    RetryState.MAXIMUM_ATTEMPTS_REACHED: Category.RETRIES_EXHAUSTED,
}


def failure_of(error: ActivityError) -> Failure:
    """The job's failure: as the activity judged it, or, when it never reported back, by the timeout."""
    match error.cause:
        case ApplicationError() as cause if cause.details:
            judged = Failure.model_validate(cause.details[0])
            return judged.model_copy(update={"reason": _GAVE_UP.get(error.retry_state, judged.reason)})
        case ApplicationError() as cause:
            return failure(Category.BUG, f"the worker could not run the step ({cause.type})", error.activity_id)
        case TimeoutError() as cause:
            return _of_timeout(cause, error.activity_id)
        case _:
            return failure(Category.BUG, "the step failed without saying why", error.activity_id)


def _of_timeout(cause: TimeoutError, step: str) -> Failure:
    if cause.type in {TimeoutType.SCHEDULE_TO_CLOSE, TimeoutType.SCHEDULE_TO_START}:
        message = "the job's deadline passed before the step was done"
        return failure(Category.TIMEOUT, message, step, reason=Category.DEADLINE_EXCEEDED)
    message = "the last attempt ended without a report: its worker died or was cut off, or the call took too long"
    return failure(Category.TIMEOUT, message, step, reason=Category.RETRIES_EXHAUSTED)


def error_type(error: ActivityError) -> str | None:
    """The type of the ApplicationError inside, if there is one."""
    return error.cause.type if isinstance(error.cause, ApplicationError) else None
