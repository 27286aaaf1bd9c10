"""An answer that a provider writes in the background is paid for once: a later attempt knows where it is."""

import asyncio
from collections.abc import Awaitable

import pytest

from agentjobs.domain import keys
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.effects import PendingResponse
from tests.ledger.scene import MODEL_CALL, Scene


async def remember(scene: Scene, attempt_id: int, response_id: str, model: str = "m1") -> None:
    """The provider has accepted the attempt's request."""
    await scene.ledger.effects.remember_response(attempt_id, model=model, response_id=response_id)


async def refused(remembering: Awaitable[None]) -> Category:
    """Why it was not remembered."""
    with pytest.raises(RetryableError) as error:
        await remembering
    return error.value.category


async def test_the_first_attempt_knows_of_no_answer(scene: Scene) -> None:
    job = await scene.accept()

    assert (await scene.begin(job.id, **MODEL_CALL)).response is None


@pytest.mark.parametrize("ends", ["crashed", "failed", "abandoned"])
async def test_a_later_attempt_is_told_where_the_answer_is(scene: Scene, ends: str) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, **MODEL_CALL)

    await remember(scene, attempt_id, "resp-1")
    if ends == "failed":
        await scene.fail(attempt_id, release=False)
    if ends == "abandoned":
        await scene.ledger.effects.abandon_attempt(attempt_id)

    assert (await scene.begin(job.id, **MODEL_CALL)).response == PendingResponse(id="resp-1", model="m1")
    assert (await scene.outcomes(job.id))[0][0] == ends


async def test_after_a_redrive_the_answer_is_still_there(scene: Scene) -> None:
    job = await scene.accept()
    await remember(scene, await scene.begin_attempt(job.id, **MODEL_CALL), "resp-1")
    await scene.bury(job.id)
    await scene.ledger.outcomes.resume(job.id, generation=1, policy_version="1")

    again = await scene.begin(job.id, run_id="run-2", **MODEL_CALL)

    assert again.response == PendingResponse(id="resp-1", model="m1")


async def test_a_new_answer_takes_the_place_of_the_old_one(scene: Scene) -> None:
    job = await scene.accept()
    await remember(scene, await scene.begin_attempt(job.id, **MODEL_CALL), "resp-1")
    await remember(scene, await scene.begin_attempt(job.id, **MODEL_CALL), "resp-2", model="m2")

    begun = await scene.begin(job.id, **MODEL_CALL)

    assert begun.response == PendingResponse(id="resp-2", model="m2")


async def test_another_step_knows_nothing_of_it(scene: Scene) -> None:
    job = await scene.accept()
    await remember(scene, await scene.begin_attempt(job.id, **MODEL_CALL), "resp-1")

    assert (await scene.begin(job.id, keys.ANSWER, **MODEL_CALL)).response is None


@pytest.mark.parametrize("ends", ["crashed", "failed", "abandoned", "completed", "cancelled"])
async def test_an_attempt_that_no_longer_counts_cannot_leave_an_answer(scene: Scene, ends: str) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, **MODEL_CALL)
    await _end(scene, job.id, attempt_id, ends)

    category = await refused(remember(scene, attempt_id, "resp-1"))

    assert category is Category.UNAVAILABLE
    assert await scene.rows("SELECT response_id, response_model FROM effects") == [
        {"response_id": None, "response_model": None}
    ]


async def test_an_attempt_that_crashes_at_the_same_moment_cannot_leave_an_answer(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, **MODEL_CALL)
    async with scene.held(job.id):
        beginning = asyncio.create_task(scene.begin(job.id, **MODEL_CALL))
        await scene.until_under_way([beginning])
        remembering = asyncio.create_task(remember(scene, attempt_id, "resp-1"))
        await scene.until_under_way([beginning, remembering])

    await beginning

    assert await refused(remembering) is Category.UNAVAILABLE
    assert (await scene.begin(job.id, **MODEL_CALL)).response is None


async def _end(scene: Scene, job_id: str, attempt_id: int, ends: str) -> None:
    match ends:
        case "crashed":
            await scene.begin(job_id, **MODEL_CALL)
        case "failed":
            await scene.fail(attempt_id, release=False)
        case "abandoned":
            await scene.ledger.effects.abandon_attempt(attempt_id)
        case "completed":
            await scene.ledger.effects.complete(scene.intent(job_id, **MODEL_CALL), attempt_id, {})
        case "cancelled":
            await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)
        case _:
            raise AssertionError(ends)
