"""A worker that was given up has no further say, except that a reply which is paid for is kept."""

import pytest

from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.failures import Category, RetryableError
from tests.ledger.scene import Scene

RECEIPT = {"id": "T-1"}
_LOSE = "INSERT INTO workers (id, number, identity, lost_at) VALUES ('w1', 1, 'w1', now())"
_PRESENT = "INSERT INTO workers (id, number, identity) VALUES ('w1', 1, 'w1')"


async def test_a_lost_worker_begins_nothing(scene: Scene) -> None:
    job = await scene.accept()
    await scene.execute(_LOSE)

    with pytest.raises(RetryableError) as refused:
        await scene.begin(job.id)

    assert (refused.value.category, refused.value.nothing_happened) == (Category.UNAVAILABLE, True)
    assert await scene.count("effects") == 0


@pytest.mark.parametrize("effect_class", [one for one in EffectClass if one is not EffectClass.READ_ONLY])
async def test_a_lost_worker_completes_no_effect(scene: Scene, effect_class: EffectClass) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, effect_class=effect_class)
    await scene.execute(_LOSE)

    completed = await scene.ledger.effects.complete(scene.intent(job.id), attempt_id, RECEIPT)

    effect = await scene.effect(job.id)
    assert (completed, effect.state, effect.result) == (False, EffectState.BEGUN, None)


async def test_a_lost_workers_reply_that_is_paid_for_is_kept(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id, effect_class=EffectClass.READ_ONLY)
    await scene.execute(_LOSE)

    assert await scene.ledger.effects.complete(scene.intent(job.id), attempt_id, RECEIPT)


@pytest.mark.parametrize("known", [True, False])
async def test_a_worker_that_is_there_goes_on(scene: Scene, known: bool) -> None:
    job = await scene.accept()
    if known:
        await scene.execute(_PRESENT)

    await scene.done(job.id, "step-1.create_ticket", RECEIPT)

    assert (await scene.effect(job.id)).state is EffectState.COMPLETED


async def test_another_worker_goes_on_where_the_lost_one_left_a_doubt(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id)
    await scene.execute(_LOSE)

    begun = await scene.begin(job.id, worker="w2", attempt=2)

    assert begun.in_doubt
    assert await scene.outcomes(job.id) == [("crashed", None), ("running", None)]
