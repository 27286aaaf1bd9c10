"""From an exception to what Temporal is told: category, whether to retry, and when."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import structlog
from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from agentjobs.domain.failures import (
    RETRYABLE,
    Category,
    Failure,
    JobError,
    PermanentError,
    RetryableError,
    failure,
)
from agentjobs.domain.waits import wait_before_retry
from agentjobs.ledger.database import as_job_error
from agentjobs.ledger.effects import CancelRequested, NotLive

log = structlog.get_logger()

CANCEL_REQUESTED = "cancel_requested"
JOB_OVER = "job_over"
"""Error types by which an activity tells its workflow what the ledger says; not failures of the job."""


def as_known(error: Exception) -> JobError:
    """Any exception as one of ours. What nobody foresaw is a bug: told by its type only, as its text may quote
    content, and logged by its type and place.
    """
    if isinstance(error, JobError):
        return error
    if (of_ledger := as_job_error(error)) is not None:
        return of_ledger
    if isinstance(error, ValidationError):
        return PermanentError(Category.BAD_OUTPUT, "a value did not have its declared form")
    log.error("unforeseen_error", error_type=type(error).__name__, activity=activity.info().activity_type)
    return PermanentError(Category.BUG, f"an unforeseen {type(error).__name__} in {activity.info().activity_type}")


class Verdict:
    """What follows from a failed attempt."""

    def __init__(self, failed: Failure, wait_seconds: float | None) -> None:
        self.failure = failed
        self.wait_seconds = wait_seconds

    def raised(self) -> ApplicationError:
        """As Temporal takes it: the type is the reason, the details are the whole failure."""
        retry = self.wait_seconds is not None
        return ApplicationError(
            self.failure.message,
            self.failure.model_dump(mode="json"),
            type=self.failure.reason,
            non_retryable=not retry,
            next_retry_delay=timedelta(seconds=self.wait_seconds) if self.wait_seconds is not None else None,
            # Expected failures stay out of the SDK's error logs; a bug does not.
            category=(
                ApplicationErrorCategory.UNSPECIFIED
                if self.failure.category is Category.BUG
                else ApplicationErrorCategory.BENIGN
            ),
        )


def judge(error: JobError, step: str, *, deadline_at: datetime | None, now: datetime) -> Verdict:
    """Retry with a wait, or give up: by category, by attempts left, by the job's deadline."""
    message = str(error)
    if error.category not in RETRYABLE:
        return Verdict(failure(error.category, message, step), None)
    if _attempts_are_used_up():
        return Verdict(failure(error.category, message, step, reason=Category.RETRIES_EXHAUSTED), None)
    asked = error.retry_after_seconds if isinstance(error, RetryableError) else None
    wait = wait_before_retry(
        activity.info().attempt,
        asked_seconds=asked,
        chance=random.random(),  # noqa: S311 - spreads retries, guards nothing
    )
    if deadline_at is not None and now + timedelta(seconds=wait) >= deadline_at:
        return Verdict(failure(error.category, message, step, reason=Category.DEADLINE_EXCEEDED), None)
    return Verdict(failure(error.category, message, step), wait)


def _attempts_are_used_up() -> bool:
    policy = activity.info().retry_policy
    limit = 0 if policy is None else policy.maximum_attempts
    return 0 < limit <= activity.info().attempt


def told(error: NotLive | CancelRequested) -> ApplicationError:
    """What the ledger says of the job, for its workflow: neither is a failure."""
    if isinstance(error, NotLive):
        return ApplicationError(
            str(error), error.state, type=JOB_OVER, non_retryable=True, category=ApplicationErrorCategory.BENIGN
        )
    return ApplicationError(
        "a cancel was asked for",
        type=CANCEL_REQUESTED,
        non_retryable=True,
        category=ApplicationErrorCategory.BENIGN,
    )


@contextmanager
def judged() -> Iterator[None]:
    """Around what is no attempt of an effect, such as a record: its failures are classified as everywhere."""
    try:
        yield
    except ApplicationError:  # judged already, further in
        raise
    except Exception as error:
        raise refused(error, activity.info().activity_id) from None


def refused(error: Exception, step: str) -> ApplicationError:
    """A failure outside of an attempt: before one began, or of a record."""
    return judge(as_known(error), step, deadline_at=None, now=datetime.now(UTC)).raised()
