"""Failures as Temporal and the ledger are told of them: by category, with a wait, and without content."""

from datetime import timedelta

import asyncpg
import pytest
from temporalio.exceptions import ApplicationErrorCategory

from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from tests.activities.stage import Destination, Stage, failed
from tests.ledger.scene import Scene


async def test_an_exception_that_nobody_foresaw_is_a_bug_told_by_its_kind_only(stage: Stage) -> None:
    job = await stage.scene.accept()

    error = await failed(stage.carry_out(job.id, Destination(lambda _: KeyError("s3cr3t content"))))

    assert (error.type, error.non_retryable) == ("bug", True)
    assert error.category is ApplicationErrorCategory.UNSPECIFIED  # so that the SDK logs it as an error
    assert "KeyError" in error.message
    assert "s3cr3t" not in f"{error.message} {error.details} {error.__cause__}"
    attempt = (await stage.scene.ledger.jobs.attempts(job.id))[0]
    assert (attempt.outcome, attempt.category) == ("failed", "bug")
    assert "s3cr3t" not in str(attempt)


@pytest.mark.parametrize(
    ("problem", "category", "retried"),
    [
        (asyncpg.ConnectionDoesNotExistError("s3cr3t"), "unavailable", True),
        (asyncpg.InterfaceError("s3cr3t"), "unavailable", True),
        (asyncpg.TooManyConnectionsError("s3cr3t"), "unavailable", True),
        (asyncpg.DeadlockDetectedError("s3cr3t"), "unavailable", True),
        (asyncpg.ReadOnlySQLTransactionError("s3cr3t"), "unavailable", True),
        (ConnectionRefusedError("s3cr3t"), "unavailable", True),
        (TimeoutError("s3cr3t"), "timeout", True),
        (asyncpg.QueryCanceledError("s3cr3t"), "timeout", True),
        (asyncpg.CharacterNotInRepertoireError("s3cr3t"), "invalid_input", False),
        (asyncpg.UniqueViolationError("s3cr3t"), "bug", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_a_failure_of_the_database_is_told_by_its_kind_only(
    stage: Stage, problem: Exception, category: str, retried: bool
) -> None:
    job = await stage.scene.accept()

    error = await failed(stage.carry_out(job.id, Destination(lambda _: problem)))

    assert (error.type, not error.non_retryable) == (category, retried)
    assert (error.next_retry_delay is not None) == retried
    assert "s3cr3t" not in f"{error.message} {error.details}"


async def test_a_ledger_that_is_away_is_unavailable_with_a_wait(stage: Stage, database_url: str) -> None:
    gone = await Ledger.open(database_url, size=1, application_name="tests")
    await gone.close()

    error = await failed(Stage(Scene(gone)).carry_out("job", Destination()))

    assert (error.type, error.non_retryable) == ("unavailable", False)
    assert error.next_retry_delay is not None
    assert timedelta(0) < error.next_retry_delay <= timedelta(seconds=60)


async def test_a_retryable_failure_carries_the_wait_that_was_asked_for(stage: Stage) -> None:
    job = await stage.scene.accept()
    busy = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=30)

    error = await failed(stage.carry_out(job.id, Destination(lambda _: busy)))

    assert (error.type, error.non_retryable, error.message) == ("rate_limited", False, "busy")
    assert error.category is ApplicationErrorCategory.BENIGN
    assert error.next_retry_delay is not None
    assert 30 <= error.next_retry_delay.total_seconds() <= 33
    waiting = await stage.scene.job(job.id)
    assert waiting.state is JobState.RETRY_WAIT


async def test_a_permanent_failure_is_not_retried(stage: Stage) -> None:
    job = await stage.scene.accept()
    refused = PermanentError(Category.CONTENT_REFUSED, "the model refused")

    error = await failed(stage.carry_out(job.id, Destination(lambda _: refused)))

    assert (error.type, error.non_retryable, error.next_retry_delay) == ("content_refused", True, None)
    assert (await stage.scene.job(job.id)).state is JobState.RUNNING  # its death is the workflow's to record


@pytest.mark.parametrize(
    "problem", [RetryableError(Category.TIMEOUT, "slow"), PermanentError(Category.NOT_FOUND, "gone")]
)
async def test_what_temporal_is_told_is_the_whole_failure(stage: Stage, problem: JobError) -> None:
    job = await stage.scene.accept()

    error = await failed(stage.carry_out(job.id, Destination(lambda _: problem)))

    category, message = problem.category, str(problem)
    assert list(error.details) == [
        {"category": category, "reason": category, "message": message, "step": "step-1.create_ticket"}
    ]
