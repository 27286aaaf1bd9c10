"""The effect protocol: begun before it is done, completed once, and a doubt is never lost."""

import asyncio
from decimal import Decimal

import pytest

from agentjobs.domain import keys
from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from tests.ledger.scene import CREATE_TICKET, Scene

RECEIPT = {"id": "T-1"}


async def test_the_intent_is_durable_before_the_call(scene: Scene) -> None:
    job = await scene.accept()

    begun = await scene.begin(job.id)

    effect = await scene.effect(job.id)
    assert (effect.state, effect.result, effect.begun_count) == (EffectState.BEGUN, None, 1)
    assert (begun.in_doubt, begun.receipt) == (False, None)
    assert await scene.outcomes(job.id) == [("running", None)]


async def test_an_attempt_is_told_what_it_needs_to_know_of_its_job(scene: Scene) -> None:
    job = await scene.accept(text="Grüße", deadline_seconds=600)

    begun = await scene.begin(job.id)

    assert (begun.job.text, begun.job.principal.user, begun.job.deadline_at) == ("Grüße", "ann", job.deadline_at)
    assert 590 < begun.remaining_seconds <= 600


async def test_the_first_attempt_moves_the_job_to_running(scene: Scene) -> None:
    job = await scene.accept()

    await scene.begin(job.id, attempt=3)

    now = await scene.job(job.id)
    assert (now.state, now.step, now.attempt) == (JobState.RUNNING, CREATE_TICKET, 3)
    assert now.started_at is not None
    assert await scene.events(job.id) == ["accepted", "started"]


async def test_a_later_attempt_finds_the_receipt_and_does_not_begin(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT)

    later = await scene.begin(job.id, attempt=2, run_id="run-2")

    assert (later.receipt, later.attempt_id) == (RECEIPT, None)
    assert await scene.outcomes(job.id) == [("succeeded", None)]


async def test_a_later_attempt_finds_the_doubt_and_the_earlier_one_is_closed(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id)

    later = await scene.begin(job.id, attempt=2)

    assert later.in_doubt
    assert later.attempt_id is not None
    assert (await scene.effect(job.id)).begun_count == 2
    assert await scene.outcomes(job.id) == [("crashed", None), ("running", None)]


async def test_a_failed_attempt_that_may_have_had_its_effect_leaves_a_doubt(scene: Scene) -> None:
    job = await scene.accept()
    await scene.fail(await scene.begin_attempt(job.id), release=False)

    assert (await scene.begin(job.id, attempt=2)).in_doubt


async def test_a_released_effect_is_not_in_doubt(scene: Scene) -> None:
    job = await scene.accept()
    await scene.fail(await scene.begin_attempt(job.id), release=True)

    assert (await scene.effect(job.id)).state is EffectState.RELEASED
    assert not (await scene.begin(job.id, attempt=2)).in_doubt


@pytest.mark.parametrize("effect_class", [EffectClass.IDEMPOTENT, EffectClass.RECONCILABLE, EffectClass.UNSAFE])
async def test_a_release_says_nothing_of_what_an_earlier_attempt_did(
    scene: Scene, effect_class: EffectClass
) -> None:
    job = await scene.accept()
    await scene.begin(job.id, effect_class=effect_class)  # sent, perhaps, and never heard of again
    second = await scene.begin_attempt(job.id, effect_class=effect_class, attempt=2)

    await scene.fail(second, release=True)  # this one certainly did nothing

    assert (await scene.begin(job.id, effect_class=effect_class, attempt=3)).in_doubt


async def test_of_two_attempts_that_complete_the_first_receipt_holds(scene: Scene) -> None:
    job = await scene.accept()
    intent = scene.intent(job.id, effect_class=EffectClass.IDEMPOTENT)
    attempts = [await scene.begin_attempt(job.id, effect_class=EffectClass.IDEMPOTENT) for _ in range(2)]

    completed = await asyncio.gather(
        *(scene.ledger.effects.complete(intent, attempt, {"by": attempt}) for attempt in attempts)
    )

    assert sorted(completed) == [False, True]
    winner = attempts[completed.index(True)]
    assert (await scene.effect(job.id)).result == {"by": winner}
    assert (await scene.events(job.id)).count("step_completed") == 1


async def test_of_attempts_that_begin_at_the_same_moment_one_is_without_a_doubt(scene: Scene) -> None:
    job = await scene.accept()

    begun = await asyncio.gather(*(scene.begin(job.id, attempt=number) for number in range(8)))

    assert sorted(one.in_doubt for one in begun) == [False] + [True] * 7
    assert len({one.attempt_id for one in begun}) == 8
    assert (await scene.effect(job.id)).begun_count == 8


async def test_a_later_model_call_gets_the_earlier_steps_in_their_order(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.done(job_id, CREATE_TICKET, RECEIPT)
    await scene.begin(job_id, "step-2.create_ticket")  # not done

    begun = await scene.ledger.effects.begin(scene.intent(job_id, keys.ANSWER), with_done=True)

    assert [(step.step, step.result) for step in begun.done] == [
        ("plan", {"text": "a plan"}),
        (CREATE_TICKET, RECEIPT),
    ]


async def test_a_failed_attempt_puts_the_job_into_retry_wait_until_the_next(scene: Scene) -> None:
    job = await scene.accept()

    await scene.fail(await scene.begin_attempt(job.id), release=False, wait_seconds=30)

    waiting = await scene.job(job.id)
    assert waiting.state is JobState.RETRY_WAIT
    assert waiting.failure is not None
    assert (waiting.failure.category, waiting.failure.message) == (Category.UNAVAILABLE, "away")
    assert waiting.next_attempt_at is not None
    assert (waiting.next_attempt_at - waiting.updated_at).total_seconds() == pytest.approx(30)
    assert await scene.events(job.id) == ["accepted", "started", "retry_scheduled"]


async def test_the_next_attempt_moves_the_job_back_to_running(scene: Scene) -> None:
    job = await scene.accept()
    await scene.fail(await scene.begin_attempt(job.id), release=False)

    await scene.begin(job.id, attempt=2)

    now = await scene.job(job.id)
    assert (now.state, now.next_attempt_at, now.failure, now.attempt) == (JobState.RUNNING, None, None, 2)
    assert (await scene.events(job.id))[-1] == "attempt_started"


async def test_a_last_failure_schedules_nothing(scene: Scene) -> None:
    job = await scene.accept()

    await scene.fail(await scene.begin_attempt(job.id), release=False, wait_seconds=None)

    assert (await scene.job(job.id)).state is JobState.RUNNING  # until its death is recorded
    assert await scene.outcomes(job.id) == [("failed", "unavailable")]
    assert await scene.events(job.id) == ["accepted", "started"]


async def test_an_attempt_that_was_closed_meanwhile_can_no_longer_fail(scene: Scene) -> None:
    job = await scene.accept()
    first = await scene.begin_attempt(job.id)
    await scene.begin(job.id, attempt=2)

    await scene.fail(first, release=True)

    assert (await scene.job(job.id)).state is JobState.RUNNING
    assert (await scene.effect(job.id)).state is EffectState.BEGUN
    assert await scene.outcomes(job.id) == [("crashed", None), ("running", None)]


async def test_an_attempt_knows_its_model_and_its_cost(scene: Scene) -> None:
    job = await scene.accept()
    attempt_id = await scene.begin_attempt(job.id)
    usage = Usage(tokens_in=7, tokens_out=5, usd=Decimal("0.000000001"))

    await scene.ledger.effects.complete(scene.intent(job.id), attempt_id, RECEIPT, usage=usage, model="m1")

    attempt = (await scene.ledger.jobs.attempts(job.id))[0]
    assert (attempt.model, attempt.tokens_in, attempt.tokens_out, attempt.usd) == ("m1", 7, 5, usage.usd)
    assert (await scene.job(job.id)).usage == usage


async def test_an_undo_marks_the_effect_that_it_undid(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT)
    undo = scene.intent(job.id, keys.undo_step(CREATE_TICKET), kind=EffectKind.UNDO)
    begun = await scene.ledger.effects.begin(undo)
    assert begun.attempt_id is not None

    await scene.ledger.effects.complete(
        undo, begun.attempt_id, {}, undone_key=keys.step_key(job.id, CREATE_TICKET)
    )

    undone = await scene.effect(job.id)
    assert (undone.state, undone.result) == (EffectState.UNDONE, RECEIPT)
