"""What a reviewer changes in a dead job: once and on record. Nothing made of the old input counts."""

import asyncio
from collections import Counter
from decimal import Decimal

import pytest

from agentjobs.domain import keys
from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.job import Budget
from agentjobs.ledger.corrections import BeingUndone, Correction, NotRaised
from agentjobs.ledger.dead_letters import NotOpen
from tests.ledger.scene import MODEL_CALL, Scene

OLD, NEW = "My printer is on fire", "The printer in room 7 is on fire"
RECEIPT = {"id": "T-1"}
FIRST, SECOND = keys.tool_step(1, "create_ticket"), keys.tool_step(2, "create_ticket")
OUTSIDE = {"effect_class": EffectClass.RECONCILABLE}


async def test_of_fifty_clicks_at_once_one_changes_the_input_once(scene: Scene) -> None:
    job_id = await scene.dead(text=OLD)

    answers = await asyncio.gather(
        *(correct(scene, job_id, text=f"{NEW} {number}") for number in range(50)), return_exceptions=True
    )

    assert Counter(str(answer) for answer in answers) == {"True": 1, "the letter is redrive_requested": 49}
    heard = answers.index(True)
    assert await texts(scene, job_id) == (f"{NEW} {heard}", [OLD])
    assert (await scene.topics()).count("redrive_job") == 1
    assert Counter(await deeds(scene)) == {"correct_input": 1, "redrive": 1}


async def test_the_old_input_is_kept_with_who_changed_it_and_why(scene: Scene) -> None:
    job_id = await scene.dead(text=OLD)

    await correct(scene, job_id)

    change = (await scene.ledger.dead_letters.input_changes("acme", job_id))[0]
    assert (change.generation, change.old_text, change.changed_by, change.note) == (1, OLD, "rita", "room 7")
    assert await scene.ledger.dead_letters.input_changes("other", job_id) == []


async def test_no_record_but_the_change_itself_holds_the_words(scene: Scene) -> None:
    job_id = await scene.dead(text=OLD)

    await correct(scene, job_id)

    for table in ("audit_log", "job_events", "outbox"):
        kept = str(await scene.rows(f"SELECT * FROM {table}"))
        assert OLD not in kept
        assert NEW not in kept


@pytest.mark.parametrize("settled", ["redriven", "another tenant's", "unknown"])
async def test_what_takes_no_word_is_not_changed(scene: Scene, settled: str) -> None:
    job_id = await scene.dead(text=OLD)
    if settled == "redriven":
        await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
        with pytest.raises(NotOpen):
            await correct(scene, job_id)
    elif settled == "unknown":
        assert not await correct(scene, "nothing")
    else:
        assert not await correct(scene, job_id, tenant="other")

    assert await texts(scene, job_id) == (OLD, [])
    assert await deeds(scene) == []


async def test_replies_made_of_the_old_input_are_kept_but_answer_for_nothing(scene: Scene) -> None:
    job_id = await scene.running(text=OLD)  # its plan is made
    await scene.done(job_id, "step-1.model", {"decision": 1}, **MODEL_CALL)
    await scene.bury(job_id)

    await correct(scene, job_id)

    effects = await scene.ledger.jobs.effects(job_id)
    assert [effect.step.split("~")[0] for effect in effects] == ["plan", "step-1.model"]
    assert all("~before-" in effect.key and effect.result for effect in effects)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    begun = await scene.begin(job_id, keys.PLAN, **MODEL_CALL)
    assert (begun.receipt, begun.job.text, begun.in_doubt) == (None, NEW, False)


async def test_a_reply_of_the_old_input_that_comes_late_is_paid_for_and_dropped(scene: Scene) -> None:
    job_id = (await scene.accept(text=OLD)).id
    late = await scene.begin_attempt(job_id, keys.PLAN, **MODEL_CALL)
    await scene.bury(job_id)
    await correct(scene, job_id)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    now = await scene.begin_attempt(job_id, keys.PLAN, **MODEL_CALL, run_id="run-2")
    complete, intent = scene.ledger.effects.complete, scene.intent(job_id, keys.PLAN, **MODEL_CALL)

    taken = [
        await complete(intent, late, {"text": "old"}, usage=Usage(tokens_in=7, tokens_out=2)),
        await complete(intent, now, {"text": "new"}, usage=Usage(tokens_in=7, tokens_out=2)),
    ]

    assert taken == [False, True]
    assert (await scene.effect(job_id, keys.PLAN)).result == {"text": "new"}
    assert (await scene.job(job_id)).tokens_in == 14


async def test_a_late_ticket_of_the_old_input_is_not_taken(scene: Scene) -> None:
    job_id = await scene.running(text=OLD)
    late = await scene.begin_attempt(job_id, FIRST)
    await scene.bury(job_id)
    await correct(scene, job_id)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    new = {"fingerprint": "a" * 64, "run_id": "run-2"}
    await scene.begin(job_id, FIRST, **new)

    taken = await scene.ledger.effects.complete(scene.intent(job_id, FIRST), late, RECEIPT)

    assert not taken
    assert (await scene.effect(job_id, FIRST)).state is EffectState.BEGUN


async def test_what_is_done_and_what_led_to_it_stays(scene: Scene) -> None:
    job_id = await scene.running(text=OLD)
    await scene.done(job_id, "step-1.model", {"decision": 1}, **MODEL_CALL)
    await scene.done(job_id, FIRST, RECEIPT)
    await scene.done(job_id, "step-2.model", {"decision": 2}, **MODEL_CALL)
    await scene.bury(job_id)

    await correct(scene, job_id)

    assert await standing(scene, job_id) == ["step-1.create_ticket", "step-1.model"]


async def test_a_call_in_doubt_stays_with_its_arguments_unless_a_person_says_again(scene: Scene) -> None:
    kept, anew = [await in_doubt(scene) for _ in range(2)]

    await correct(scene, kept)
    await correct(scene, anew, again=True)

    assert await standing(scene, kept) == ["step-1.create_ticket", "step-1.model"]
    assert await standing(scene, anew) == ["step-1.create_ticket"]
    effect = await scene.effect(anew, FIRST)
    assert (effect.state, effect.generation) == (EffectState.RELEASED, 2)
    await scene.ledger.outcomes.resume(anew, generation=1, policy_version="1", again=True)
    begun = await scene.begin(anew, FIRST, **OUTSIDE, fingerprint="a" * 64)
    assert begun.destination_key.endswith("~2")  # what is still on its way cannot answer for it
    assert not begun.in_doubt


async def test_a_second_correction_keeps_both_old_inputs(scene: Scene) -> None:
    job_id = await scene.running(text=OLD)
    await scene.bury(job_id)
    await correct(scene, job_id)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await scene.done(job_id, keys.PLAN, {"text": "another"}, **MODEL_CALL)
    await scene.bury(job_id, generation=1)

    await correct(scene, job_id, text="No printer at all")

    assert await texts(scene, job_id) == ("No printer at all", [OLD, NEW])
    corrected = scene.ledger.dead_letters.input_corrected
    assert [await corrected(job_id, generation) for generation in (1, 2, 3)] == [True, True, False]
    assert await standing(scene, job_id) == []


async def test_a_job_that_is_being_undone_keeps_its_input(scene: Scene) -> None:
    job_id = await scene.running(text=OLD)
    await scene.done(job_id, FIRST, RECEIPT)
    await scene.begin_attempt(job_id, keys.undo_step(FIRST), kind=EffectKind.UNDO)
    await scene.bury(job_id)

    with pytest.raises(BeingUndone):
        await correct(scene, job_id)

    assert await texts(scene, job_id) == (OLD, [])
    assert (await scene.letter(job_id)).state == "open"


async def test_a_raised_budget_is_on_record_with_what_it_was(scene: Scene) -> None:
    job_id = await scene.dead(budget=Budget(tokens=100, usd=Decimal("1.5")))

    await raise_to(scene, job_id, Budget(tokens=200))

    job = await scene.job(job_id)
    assert (job.budget_tokens, job.budget_usd) == (200, Decimal("1.5"))
    details = await scene.rows("SELECT details FROM audit_log WHERE action = 'raise_job_budget'")
    assert details[0]["details"] == {
        "before": {"tokens": 100, "usd": "1.500000", "steps": None},
        "after": {"tokens": 200, "usd": "1.500000", "steps": None},
    }


@pytest.mark.parametrize(
    ("wanted", "limit", "least"),
    [
        (Budget(tokens=100), "tokens", 150),
        (Budget(tokens=120), "tokens", 150),  # so much is spent
        (Budget(usd=Decimal(1)), "usd", None),  # no limit is more than any
        (Budget(tokens=200, steps=2), "steps", 2),
    ],
)
async def test_a_limit_that_is_not_raised_changes_nothing(
    scene: Scene, wanted: Budget, limit: str, least: int | None
) -> None:
    job_id = (await scene.accept(budget=Budget(tokens=100, steps=2))).id
    attempt_id = await scene.begin_attempt(job_id, keys.PLAN, **MODEL_CALL)
    plan = scene.intent(job_id, keys.PLAN, **MODEL_CALL)
    await scene.ledger.effects.complete(plan, attempt_id, {}, usage=Usage(tokens_in=100, tokens_out=50))
    await scene.bury(job_id)

    with pytest.raises(NotRaised) as refused:
        await raise_to(scene, job_id, wanted)

    assert (refused.value.limit, refused.value.least) == (limit, least)
    assert (await scene.job(job_id)).budget_tokens == 100
    assert (await scene.letter(job_id)).state == "open"
    assert await deeds(scene) == []


async def correct(
    scene: Scene, job_id: str, *, text: str = NEW, again: bool = False, tenant: str = "acme"
) -> bool:
    return await scene.ledger.dead_letters.request(
        "redrive",
        tenant,
        job_id,
        actor="rita",
        note="room 7",
        payload={"again": again},
        correction=Correction(text=text),
    )


async def raise_to(scene: Scene, job_id: str, budget: Budget) -> None:
    await scene.ledger.dead_letters.request(
        "redrive", "acme", job_id, actor="rita", note="", payload={}, correction=Correction(budget=budget)
    )


async def in_doubt(scene: Scene) -> str:
    """A dead job whose ticket may have been created at another system."""
    job_id = await scene.running(text=OLD)
    await scene.done(job_id, "step-1.model", {"decision": 1}, **MODEL_CALL)
    await scene.begin(job_id, FIRST, **OUTSIDE)
    await scene.bury(job_id)
    return job_id


async def texts(scene: Scene, job_id: str) -> tuple[str, list[str]]:
    """The job's input, and the earlier ones."""
    now = await scene.rows("SELECT input ->> 'text' AS text FROM jobs WHERE id = $1", job_id)
    before = await scene.rows("SELECT old_input ->> 'text' AS text FROM input_changes ORDER BY id")
    return now[0]["text"], [row["text"] for row in before]


async def deeds(scene: Scene) -> list[str]:
    return [row["action"] for row in await scene.rows("SELECT action FROM audit_log ORDER BY id")]


async def standing(scene: Scene, job_id: str) -> list[str]:
    """The steps that are not set aside."""
    return sorted(e.step for e in await scene.ledger.jobs.effects(job_id) if "~" not in e.step)
