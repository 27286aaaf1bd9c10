"""How many attempts a step has in one run: what counts, what does not, and what the last one leads to."""

from typing import Any

import pytest

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.domain.waits import ATTEMPT_LIMITS, Tried
from agentjobs.ledger.effects import RetriesExhausted
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL, Scene

KINDS: list[tuple[dict[str, Any], int]] = [
    (MODEL_CALL, 6),
    ({"kind": EffectKind.TOOL, "effect_class": EffectClass.IDEMPOTENT}, 8),
    ({"kind": EffectKind.UNDO, "effect_class": EffectClass.IDEMPOTENT}, 20),
]
KIND_NAMES = ["model", "tool", "undo"]


async def crash(scene: Scene, job_id: str, times: int, **changes: Any) -> None:
    """So many attempts begin, and none of them reports back: the last one still stands as running."""
    for _ in range(times):
        await scene.begin(job_id, **changes)


@pytest.mark.parametrize(("kind", "limit"), KINDS, ids=KIND_NAMES)
async def test_after_so_many_crashes_none_is_begun_any_more(
    scene: Scene, kind: dict[str, Any], limit: int
) -> None:
    job = await scene.accept()
    await crash(scene, job.id, limit - 1, **kind)
    last = await scene.begin(job.id, **kind)  # so the limit is not reached before its time
    so_far = await scene.outcomes(job.id)

    with pytest.raises(RetriesExhausted):
        await scene.begin(job.id, **kind)

    assert last.tried == Tried(counted=limit - 1)
    assert so_far == [("crashed", None)] * (limit - 1) + [("running", None)]
    assert await scene.outcomes(job.id) == so_far  # what was refused is no attempt


@pytest.mark.parametrize(("kind", "limit"), KINDS, ids=KIND_NAMES)
async def test_failed_and_crashed_attempts_count_alike(scene: Scene, kind: dict[str, Any], limit: int) -> None:
    job = await scene.accept()
    for _ in range(limit // 2):
        await scene.fail(await scene.begin_attempt(job.id, **kind), release=False)
        await scene.begin(job.id, **kind)

    with pytest.raises(RetriesExhausted):
        await scene.begin(job.id, **kind)

    assert len(await scene.outcomes(job.id)) == limit


@pytest.mark.parametrize("category", [Category.UNAVAILABLE, Category.TIMEOUT])
async def test_what_may_pass_counts(scene: Scene, category: Category) -> None:
    job = await scene.accept()

    await scene.fail(await scene.begin_attempt(job.id), release=True, category=category)

    assert (await scene.begin(job.id)).tried == Tried(counted=1)


async def test_a_wait_that_was_asked_for_is_told_apart(scene: Scene) -> None:
    job = await scene.accept()

    await scene.fail(await scene.begin_attempt(job.id), release=True, category=Category.RATE_LIMITED)

    assert (await scene.begin(job.id)).tried == Tried(rate_limited=1)


async def test_a_reply_without_its_form_is_told_apart(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, **MODEL_CALL)

    await scene.fail(attempt_id, release=False, category=Category.BAD_OUTPUT, paid=Usage(tokens_in=1))

    assert (await scene.begin(job.id, **MODEL_CALL)).tried == Tried(malformed=1)


async def test_an_attempt_that_was_cut_off_on_purpose_does_not_count(scene: Scene) -> None:
    job = await scene.accept()
    for _ in range(10):
        await scene.ledger.effects.abandon_attempt(await scene.begin_attempt(job.id))

    begun = await scene.begin(job.id)

    assert begun.tried == Tried()
    assert await scene.outcomes(job.id) == [("abandoned", None)] * 10 + [("running", None)]


async def test_a_thousand_refusals_for_lack_of_room_exhaust_nothing(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id, **MODEL_CALL)
    await scene.execute(_A_THOUSAND_BUSY, job.id, scene.intent(job.id).key, CREATE_TICKET)

    begun = await scene.begin(job.id, **MODEL_CALL)

    assert begun.tried == Tried(counted=1, rate_limited=1000)
    assert len(begun.failures) == 10  # a brief has no use for more


async def test_attempts_of_other_steps_and_jobs_do_not_count(scene: Scene) -> None:
    job, other = await scene.accept(), await scene.accept()
    await crash(scene, job.id, 6, step="plan", **MODEL_CALL)
    await crash(scene, other.id, 6, **MODEL_CALL)

    assert (await scene.begin(job.id, **MODEL_CALL)).tried == Tried()


async def test_another_run_starts_to_count_anew(scene: Scene) -> None:
    job = await scene.accept()
    limit = ATTEMPT_LIMITS[EffectKind.MODEL]
    await crash(scene, job.id, limit, **MODEL_CALL)

    await crash(scene, job.id, limit, run_id="run-2", **MODEL_CALL)

    with pytest.raises(RetriesExhausted):
        await scene.begin(job.id, run_id="run-2", **MODEL_CALL)
    with pytest.raises(RetriesExhausted):
        await scene.begin(job.id, **MODEL_CALL)


async def test_a_step_that_is_done_is_given_back_although_its_attempts_are_used_up(scene: Scene) -> None:
    job = await scene.accept()
    await crash(scene, job.id, 5, **MODEL_CALL)
    late = await scene.begin_attempt(job.id, **MODEL_CALL)
    await scene.execute("UPDATE attempts SET outcome = 'crashed', finished_at = now()")
    intent = scene.intent(job.id, **MODEL_CALL)
    await scene.ledger.effects.complete(intent, late, {"text": "after all"})
    await scene.execute("UPDATE attempts SET outcome = 'crashed'")

    begun = await scene.begin(job.id, **MODEL_CALL)

    assert (begun.receipt, begun.attempt_id) == ({"text": "after all"}, None)


async def test_the_refused_begin_changes_nothing(scene: Scene) -> None:
    job = await scene.accept()
    await crash(scene, job.id, 6, **MODEL_CALL)
    before = (await scene.job(job.id), await scene.effect(job.id), await scene.events(job.id))

    with pytest.raises(RetriesExhausted):
        await scene.begin(job.id, attempt=7, **MODEL_CALL)

    after = (await scene.job(job.id), await scene.effect(job.id), await scene.events(job.id))
    assert before[0] == after[0]
    assert (before[1].state, before[1].begun_count) == (after[1].state, after[1].begun_count)
    assert before[2] == after[2]


async def test_a_death_closes_the_attempt_that_never_reported_back(scene: Scene) -> None:
    job = await scene.accept()
    await crash(scene, job.id, 6, **MODEL_CALL)

    await scene.bury(job.id, reason=Category.RETRIES_EXHAUSTED)

    assert await scene.outcomes(job.id) == [("crashed", None)] * 6
    assert (await scene.job(job.id)).state is JobState.DEAD


async def test_the_end_of_a_job_closes_what_was_in_flight_as_cut_off(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.begin(job_id)

    await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)

    assert await scene.outcomes(job_id) == [("succeeded", None), ("abandoned", None)]


async def test_an_attempt_that_has_ended_cannot_be_cut_off_any_more(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id)
    await scene.fail(attempt_id, release=True)

    await scene.ledger.effects.abandon_attempt(attempt_id)

    assert await scene.outcomes(job.id) == [("failed", "unavailable")]


async def test_a_model_call_is_told_how_its_latest_attempts_failed_and_a_tool_is_not(scene: Scene) -> None:
    job = await scene.accept()
    for category in (Category.UNAVAILABLE, Category.BAD_OUTPUT):
        attempt_id = await scene.begin_attempt(job.id, **MODEL_CALL)
        await scene.fail(attempt_id, release=False, category=category, paid=Usage())
    await scene.fail(await scene.begin_attempt(job.id, "step-2.create_ticket"), release=True)

    model = await scene.begin(job.id, **MODEL_CALL)
    tool = await scene.begin(job.id, "step-2.create_ticket")

    assert [(one.category, one.message) for one in model.failures] == [
        (Category.UNAVAILABLE, "away"),
        (Category.BAD_OUTPUT, "away"),
    ]
    assert tool.failures == ()


_A_THOUSAND_BUSY = """
INSERT INTO attempts (job_id, step, effect_key, run_id, attempt, worker, outcome, category, message, finished_at)
SELECT $1, $3, $2, 'run-1', number, 'w1', 'failed', 'rate_limited', 'busy', now()
  FROM generate_series(2, 1001) AS number
"""
