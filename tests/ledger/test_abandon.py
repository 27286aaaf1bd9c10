"""Given up: what certainly was not done can no longer be done by an attempt that comes late."""

import asyncio

import pytest

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.ledger.effects import CancelRequested
from tests.ledger.scene import CREATE_TICKET, Scene

RECEIPT = {"id": "T-1"}
AT_ANOTHER_SYSTEM = (EffectClass.IDEMPOTENT, EffectClass.RECONCILABLE, EffectClass.UNSAFE)
OURS = (EffectClass.TRANSACTIONAL, EffectClass.READ_ONLY)


@pytest.mark.parametrize("effect_class", OURS)
async def test_a_begun_effect_of_our_own_is_given_up(scene: Scene, effect_class: EffectClass) -> None:
    job = await scene.accept()
    await scene.begin(job.id, effect_class=effect_class)

    await scene.abandon(job.id)

    assert (await scene.effect(job.id)).state is EffectState.ABANDONED


@pytest.mark.parametrize("effect_class", AT_ANOTHER_SYSTEM)
async def test_a_begun_effect_at_another_system_stays_in_doubt(scene: Scene, effect_class: EffectClass) -> None:
    job = await scene.accept()
    await scene.begin(job.id, effect_class=effect_class)

    await scene.abandon(job.id)

    assert (await scene.effect(job.id)).state is EffectState.BEGUN


@pytest.mark.parametrize("effect_class", EffectClass)
async def test_a_released_effect_is_given_up(scene: Scene, effect_class: EffectClass) -> None:
    job = await scene.accept()
    await scene.fail(await scene.begin_attempt(job.id, effect_class=effect_class), release=True)

    await scene.abandon(job.id)

    assert (await scene.effect(job.id)).state is EffectState.ABANDONED


@pytest.mark.parametrize("effect_class", AT_ANOTHER_SYSTEM)
async def test_an_effect_that_an_earlier_attempt_may_have_had_is_not_given_up(
    scene: Scene, effect_class: EffectClass
) -> None:
    job = await scene.accept()
    await scene.begin(job.id, effect_class=effect_class)  # sent, perhaps
    await scene.fail(await scene.begin_attempt(job.id, effect_class=effect_class, attempt=2), release=True)

    await scene.abandon(job.id)

    # Else an undo would find nothing to undo, and leave it standing.
    assert (await scene.effect(job.id)).state is not EffectState.ABANDONED


@pytest.mark.parametrize("effect_class", EffectClass)
async def test_what_is_done_stays_done(scene: Scene, effect_class: EffectClass) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT, effect_class=effect_class)

    await scene.abandon(job.id)

    assert (await scene.effect(job.id)).state is EffectState.COMPLETED


async def test_a_late_attempt_cannot_complete_what_was_given_up(scene: Scene) -> None:
    job = await scene.accept()
    late = await scene.begin_attempt(job.id)
    await scene.abandon(job.id)

    completed = await scene.ledger.effects.complete(scene.intent(job.id), late, RECEIPT)

    effect = await scene.effect(job.id)
    assert (completed, effect.state, effect.result) == (False, EffectState.ABANDONED, None)


async def test_a_late_attempt_learns_before_its_call_that_it_was_given_up(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id)
    await scene.abandon(job.id)

    with pytest.raises(PermanentError) as refused:
        async with scene.ledger.database.transaction() as connection:
            await scene.ledger.effects.lock(connection, keys.step_key(job.id, CREATE_TICKET))

    assert refused.value.category is Category.OUTCOME_UNKNOWN


async def test_no_further_attempt_begins_of_what_was_given_up(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id)
    await scene.bury(job.id)
    await scene.abandon(job.id)
    await scene.ledger.outcomes.resume(job.id, generation=1, policy_version="1")

    with pytest.raises(PermanentError) as refused:
        await scene.begin(job.id, attempt=2)

    assert refused.value.category is Category.OUTCOME_UNKNOWN
    assert (await scene.effect(job.id)).state is EffectState.ABANDONED


async def test_giving_up_what_was_never_begun_changes_nothing(scene: Scene) -> None:
    job = await scene.accept()

    await scene.abandon(job.id)

    assert await scene.ledger.effects.read(keys.step_key(job.id, CREATE_TICKET)) is None


async def test_once_a_live_job_is_being_undone_none_of_its_steps_begins(scene: Scene) -> None:
    job_id = await scene.running()

    await scene.abandon(job_id)

    with pytest.raises(CancelRequested):
        await scene.begin(job_id)
    assert (await scene.job(job_id)).cancel_requested_at is not None
    assert await scene.count("effects") == 1  # the plan's


async def test_a_step_that_begins_at_the_same_moment_is_seen_by_the_undo(scene: Scene) -> None:
    job_id = await scene.running()
    async with scene.held(job_id):
        beginning = asyncio.create_task(scene.begin(job_id))
        await scene.until_under_way([beginning])
        undoing = asyncio.create_task(scene.abandon(job_id))
        await scene.until_under_way([beginning, undoing])
    await asyncio.gather(beginning, undoing)

    assert (await scene.effect(job_id)).state is EffectState.ABANDONED


async def test_an_undo_leaves_the_first_word_of_a_cancel_as_it_was(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")
    before = await scene.job(job_id)

    await scene.abandon(job_id)

    assert await scene.job(job_id) == before
