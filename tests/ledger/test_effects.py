"""The effect protocol: begun before it is done, completed once, and a doubt is never lost."""

import asyncio
from decimal import Decimal

import pytest

from agentjobs.domain import keys
from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Category, KeyConflict, PermanentError
from agentjobs.domain.states import FINAL, LIVE, JobState
from agentjobs.ledger.effects import CancelRequested, NotLive
from tests.ledger.scene import CREATE_TICKET, RESERVE_TEN, Scene

RECEIPT = {"id": "T-1"}
TICKETS = "tickets:create"


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


async def test_the_same_key_with_other_arguments_is_a_conflict_without_content(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT, fingerprint="a" * 64)

    with pytest.raises(KeyConflict) as refused:
        await scene.begin(job.id, fingerprint="b" * 64)

    assert refused.value.category is Category.KEY_CONFLICT
    assert ("a" * 16 in str(refused.value), "b" * 16 in str(refused.value)) == (True, True)
    assert "T-1" not in str(refused.value)


async def test_a_conflict_is_an_attempt_on_record_and_changes_nothing_else(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT, fingerprint="a" * 64)
    before = await scene.rows("SELECT * FROM effects")

    with pytest.raises(KeyConflict):
        await scene.begin(job.id, fingerprint="b" * 64)

    assert await scene.rows("SELECT * FROM effects") == before
    assert await scene.outcomes(job.id) == [("succeeded", None), ("failed", "key_conflict")]


async def test_a_missing_grant_is_refused_and_on_record(scene: Scene) -> None:
    job = await scene.accept()

    with pytest.raises(PermanentError, match="no grant") as refused:
        await scene.begin(job.id, grant=TICKETS)

    assert refused.value.category is Category.ACCESS_DENIED
    assert await scene.outcomes(job.id) == [("failed", "access_denied")]
    assert await scene.count("effects") == 0


async def test_a_grant_counts_at_the_moment_of_the_effect(scene: Scene) -> None:
    job = await scene.accept()
    await scene.ledger.identity.add_grant("acme", "ann", TICKETS, granted_by="test")
    await scene.fail(await scene.begin_attempt(job.id, grant=TICKETS), release=True)
    await scene.ledger.identity.revoke_grant("acme", "ann", TICKETS)

    with pytest.raises(PermanentError, match="no grant"):
        await scene.begin(job.id, grant=TICKETS, attempt=2)


@pytest.mark.parametrize(("tenant", "user"), [("acme", "bob"), ("other", "ann")])
async def test_anothers_grant_does_not_count(scene: Scene, tenant: str, user: str) -> None:
    await scene.ledger.identity.create_tenant("other")
    await scene.ledger.identity.add_grant(tenant, user, TICKETS, granted_by="test")
    job = await scene.accept()

    with pytest.raises(PermanentError, match="no grant"):
        await scene.begin(job.id, grant=TICKETS)


async def test_no_step_begins_after_the_deadline(scene: Scene) -> None:
    job = await scene.accept()
    await scene.execute("UPDATE jobs SET deadline_at = now()")

    with pytest.raises(PermanentError) as refused:
        await scene.begin(job.id)

    assert refused.value.category is Category.DEADLINE_EXCEEDED
    assert await scene.outcomes(job.id) == [("failed", "deadline_exceeded")]


async def test_what_is_done_is_returned_even_if_it_may_no_longer_be_begun(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT)
    await scene.execute("UPDATE jobs SET deadline_at = now(), budget_tokens = 1, tokens_in = 2")

    later = await scene.begin(job.id, grant=TICKETS, reserve=RESERVE_TEN)

    assert later.receipt == RECEIPT


@pytest.mark.parametrize("state", [state for state in JobState if state not in LIVE])
async def test_no_step_begins_of_a_job_that_is_over_or_dead(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    with pytest.raises(NotLive) as refused:
        await scene.begin(job.id)

    assert refused.value.state is state
    assert await scene.count("effects") == await scene.count("attempts") == 0


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_step_begins_in_every_live_state(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    await scene.begin(job.id)

    assert (await scene.job(job.id)).state is JobState.RUNNING


async def test_no_step_begins_after_a_cancel_was_asked_for_except_an_undo(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")

    with pytest.raises(CancelRequested):
        await scene.begin(job_id)

    assert (await scene.begin(job_id, "undo.x", kind=EffectKind.UNDO)).attempt_id is not None


@pytest.mark.parametrize("state", sorted(FINAL | {JobState.DEAD}))
async def test_an_undo_begins_of_a_dead_job_and_of_none_that_is_over(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    try:
        await scene.begin(job.id, "undo.x", kind=EffectKind.UNDO)
        began = True
    except NotLive:
        began = False

    assert began == (state is JobState.DEAD)
    assert (await scene.job(job.id)).state is state


async def test_a_job_that_the_ledger_has_not_is_not_found(scene: Scene) -> None:
    with pytest.raises(PermanentError) as refused:
        await scene.begin("nothing")

    assert refused.value.category is Category.NOT_FOUND


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

    begun = await asyncio.gather(*(scene.begin(job.id, attempt=number) for number in range(10)))

    assert sorted(one.in_doubt for one in begun) == [False] + [True] * 9
    assert len({one.attempt_id for one in begun}) == 10
    assert (await scene.effect(job.id)).begun_count == 10


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
