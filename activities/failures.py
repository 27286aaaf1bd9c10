"""From an exception to what Temporal is told: category, whether to retry, and when."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import structlog
from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.carried import carried
from agentjobs.domain.failures import Category, JobError, PermanentError, failure
from agentjobs.domain.waits import Tried, Verdict, judge
from agentjobs.ledger.database import as_job_error
from agentjobs.ledger.effects import CancelRequested, NotLive
from agentjobs.tracing.runs import run_ended

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
    log.error("unforeseen_error", error_type=type(error).__name__, activity=carried().type)
    return PermanentError(Category.BUG, f"an unforeseen {type(error).__name__} in {carried().type}")


def raised(verdict: Verdict) -> ApplicationError:
    """A verdict as Temporal takes it: the type is the reason, the details are the whole failure."""
    wait = verdict.wait_seconds
    return ApplicationError(
        verdict.failure.message,
        verdict.failure.model_dump(mode="json"),
        type=verdict.failure.reason,
        non_retryable=wait is None,
        next_retry_delay=None if wait is None else timedelta(seconds=wait),
        # Expected failures stay out of the SDK's error logs; a bug in an activity of its own does not.
        category=(
            ApplicationErrorCategory.UNSPECIFIED
            if verdict.failure.category is Category.BUG
            else ApplicationErrorCategory.BENIGN
        ),
    )


def chance() -> float:
    """Uniform in [0, 1)."""
    return random.random()  # noqa: S311 - spreads retries, guards nothing


def exhausted(step: str) -> ApplicationError:
    """Attempts crashed too often: the ledger begins none any more."""
    message = "attempts of this step ended again and again without a report: its worker died, or was cut off"
    reason = Category.RETRIES_EXHAUSTED
    return raised(Verdict(failure=failure(Category.TIMEOUT, message, step, reason=reason), wait_seconds=None))


def told(error: NotLive | CancelRequested) -> ApplicationError:
    """What the ledger says of the job, for its workflow: neither is a failure. (Of a job that somebody else has
    ended, nobody else tells the run's span.)
    """
    if isinstance(error, NotLive):
        run_ended(error.state)
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
        raise refused(error, carried().id) from None


def refused(error: Exception, step: str) -> ApplicationError:
    """A failure outside of an attempt: before one began, or of a record. Nobody counts these; the activity's own
    time limit bounds them.
    """
    so_far = Tried(counted=activity.info().attempt - 1, rate_limited=activity.info().attempt - 1)
    now = datetime.now(UTC)
    return raised(
        judge(as_known(error), step, kind=None, tried=so_far, deadline_at=None, now=now, chance=chance())
    )
