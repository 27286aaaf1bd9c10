"""Hours and days, skipped: on the test server and on the real server's own time skipping."""

from datetime import timedelta

from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from tests.fakes import ScriptedProvider
from tests.world import World

AN_HOUR = 3600
DAYS = 24 * AN_HOUR


def away(seconds: float) -> RetryableError:
    """A model that is away, and says for how long."""
    return RetryableError(Category.UNAVAILABLE, "the model is away", retry_after_seconds=seconds)


async def test_a_job_outlasts_hours_of_retries(skipping_world: World) -> None:
    job_id = await skipping_world.submit(deadline_seconds=7 * DAYS)

    async with skipping_world.running(ScriptedProvider(errors=(away(AN_HOUR),) * 3)):
        job = await skipping_world.until(job_id)

    waits = [a.wait_seconds for a in await skipping_world.ledger.jobs.attempts(job_id) if a.wait_seconds]
    assert job.state is JobState.SUCCEEDED
    assert len(waits) == 3
    assert min(waits) >= AN_HOUR


async def test_retries_end_at_the_deadline(skipping_real_world: World) -> None:
    provider = ScriptedProvider()
    provider.fail_at("plan", away(AN_HOUR))
    job_id = await skipping_real_world.submit(deadline_seconds=int(2.5 * AN_HOUR))

    async with skipping_real_world.running(provider):
        job = await skipping_real_world.until(job_id)

    assert job.failure is not None
    assert job.failure.reason is Category.DEADLINE_EXCEEDED
    assert job.failure.category is Category.UNAVAILABLE
    assert len(provider.calls) <= 3


async def test_retries_end_when_the_attempts_are_used_up(skipping_world: World) -> None:
    provider = ScriptedProvider()
    provider.fail_at("plan", away(600))
    job_id = await skipping_world.submit(deadline_seconds=7 * DAYS)

    async with skipping_world.running(provider):
        job = await skipping_world.until(job_id)

    assert job.failure is not None
    assert job.failure.reason is Category.RETRIES_EXHAUSTED
    assert len(provider.calls) == 6


async def test_a_redriven_job_gets_a_fresh_deadline(skipping_real_world: World) -> None:
    provider = ScriptedProvider()
    provider.fail_at("plan", away(AN_HOUR))
    job_id = await skipping_real_world.submit(deadline_seconds=int(1.5 * AN_HOUR))

    async with skipping_real_world.running(provider):
        dead = await skipping_real_world.until(job_id)
        provider.fail_at("plan", None)
        await skipping_real_world.order("redrive", job_id)
        job = await skipping_real_world.until(job_id, JobState.SUCCEEDED)

    assert job.deadline_at > dead.deadline_at
    assert job.deadline_at - dead.deadline_at < timedelta(hours=1)
