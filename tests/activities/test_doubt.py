"""What a later attempt does, when an earlier one may have had its effect: by the declared class, never by hope."""

import pytest

from activities.executor import Reply
from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.ledger.effects import Begun
from agentjobs.tools.tool import ToolRegistry
from tests.activities.stage import SECOND, Attempt, Destination, Receipt, Stage, failed, failing_at, told
from tests.fakes import CountingTool

# Every place where an attempt can die after it has called and before its receipt is stored.
AFTER_THE_CALL = ("effect.after_call", "effect.before_complete")
REPEATED = (EffectClass.READ_ONLY, EffectClass.IDEMPOTENT)


def finding(receipt: Receipt | None) -> "LookUpOnce":
    """A destination's answer to the question what became of a key."""
    return LookUpOnce(receipt)


class LookUpOnce:
    """Counts how often it was asked."""

    def __init__(self, receipt: Receipt | None) -> None:
        self._receipt = receipt
        self.asked = 0

    async def __call__(self, begun: Begun) -> Reply | None:
        """What the destination knows."""
        self.asked += 1
        return None if self._receipt is None else Reply(self._receipt)


@pytest.mark.parametrize("effect_class", EffectClass)
async def test_a_stored_receipt_is_returned_without_a_call(stage: Stage, effect_class: EffectClass) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    first = await stage.carry_out(job.id, destination, effect_class)

    second = await stage.carry_out(job.id, destination, effect_class, SECOND)

    assert first == second == {"call": 1}
    assert destination.calls == 1


@pytest.mark.parametrize("effect_class", [one for one in EffectClass if one is not EffectClass.TRANSACTIONAL])
async def test_an_attempt_that_dies_after_the_receipt_is_stored_repeats_nothing(
    stage: Stage, effect_class: EffectClass
) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    await failed(stage.carry_out(job.id, destination, effect_class, failing_at("effect.after_complete")))

    receipt = await stage.carry_out(job.id, destination, effect_class, SECOND)

    assert (receipt, destination.calls) == ({"call": 1}, 1)


@pytest.mark.parametrize("failpoint", AFTER_THE_CALL)
@pytest.mark.parametrize("effect_class", REPEATED)
async def test_what_may_be_repeated_is_repeated(stage: Stage, effect_class: EffectClass, failpoint: str) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    first = await told(stage.carry_out(job.id, destination, effect_class, failing_at(failpoint)))

    receipt = await stage.carry_out(job.id, destination, effect_class, SECOND)

    assert first == ("unavailable", True)
    assert (receipt, destination.calls) == ({"call": 2}, 2)


async def test_a_destination_gets_the_same_key_each_time(stage: Stage) -> None:
    job = await stage.scene.accept()
    seen = []

    async def call(begun: Begun, _: object) -> Reply:
        seen.append((await stage.scene.effect(begun.job.id)).key)
        return Reply(Receipt(call=1))

    await failed(stage.carry_out(job.id, call, EffectClass.IDEMPOTENT, failing_at("effect.after_call")))
    await stage.carry_out(job.id, call, EffectClass.IDEMPOTENT, SECOND)

    assert seen == [f"agent-job-{job.id}/step-1.create_ticket"] * 2


@pytest.mark.parametrize("failpoint", AFTER_THE_CALL)
async def test_what_is_unsafe_is_never_called_again(stage: Stage, failpoint: str) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    await failed(stage.carry_out(job.id, destination, EffectClass.UNSAFE, failing_at(failpoint)))

    again = [
        await told(stage.carry_out(job.id, destination, EffectClass.UNSAFE, Attempt(number=number)))
        for number in (2, 3)
    ]

    assert again == [("outcome_unknown", False)] * 2
    assert destination.calls == 1
    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN


async def test_what_is_unsafe_is_called_again_when_certainly_nothing_happened(stage: Stage) -> None:
    job = await stage.scene.accept()
    refused = RetryableError(Category.UNAVAILABLE, "connection refused", nothing_happened=True)
    destination = Destination(lambda number: refused if number == 1 else Receipt(call=number))
    await failed(stage.carry_out(job.id, destination, EffectClass.UNSAFE))

    receipt = await stage.carry_out(job.id, destination, EffectClass.UNSAFE, SECOND)

    assert receipt == {"call": 2}


async def test_what_can_be_looked_up_is_adopted_and_not_sent_again(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination, look_up = Destination(), finding(Receipt(call=41))
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, failing_at("effect.after_call")))

    receipt = await stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, SECOND, look_up=look_up)

    assert (receipt, destination.calls, look_up.asked) == ({"call": 41}, 1, 1)
    assert (await stage.scene.effect(job.id)).result == {"call": 41}


async def test_nothing_is_looked_up_without_a_doubt(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination, look_up = Destination(), finding(None)

    await stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, look_up=look_up)

    assert (destination.calls, look_up.asked) == (1, 0)


async def test_not_found_yet_does_not_mean_will_not_be(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination, look_up = Destination(), finding(None)
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, failing_at("effect.after_call")))

    error = await failed(
        stage.carry_out(
            job.id, destination, EffectClass.RECONCILABLE, SECOND, look_up=look_up, horizon_seconds=20.0
        )
    )

    assert (error.type, error.non_retryable, destination.calls) == ("unavailable", False, 1)
    assert error.next_retry_delay is not None
    # What the first attempt may still send (60 s) and what of it may still land (20 s), and up to a tenth.
    assert 79 < error.next_retry_delay.total_seconds() <= 88


async def test_what_can_no_longer_land_is_sent_again(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination, look_up = Destination(), finding(None)
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, failing_at("effect.after_call")))
    await stage.scene.execute("UPDATE effects SET sent_at = now() - interval '81 seconds'")

    receipt = await stage.carry_out(
        job.id, destination, EffectClass.RECONCILABLE, SECOND, look_up=look_up, horizon_seconds=20.0
    )

    assert (receipt, look_up.asked) == ({"call": 2}, 1)


async def test_an_attempt_that_sends_again_makes_a_doubt_of_its_own(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination, look_up = Destination(), finding(None)
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, failing_at("effect.after_call")))
    await stage.scene.execute("UPDATE effects SET sent_at = now() - interval '10 minutes'")
    again = failing_at("effect.after_call", number=2)
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, again, look_up=look_up))

    third = await told(
        stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, Attempt(number=3), look_up=look_up)
    )

    assert (third, destination.calls) == (("unavailable", True), 2)


async def test_a_doubt_that_nobody_can_look_up_goes_to_a_person(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    await failed(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, failing_at("effect.after_call")))

    second = await told(stage.carry_out(job.id, destination, EffectClass.RECONCILABLE, SECOND))

    assert (second, destination.calls) == (("outcome_unknown", False), 1)


async def test_arguments_that_were_refused_before_the_call_leave_no_doubt(stage: Stage) -> None:
    job = await stage.scene.accept()
    tool = CountingTool(EffectClass.UNSAFE)
    wanted = await stage.ask(job.id, tool.name, {"stray": 1})

    answer = await told(stage.run_tool(job.id, wanted, tools=ToolRegistry((tool,))))
    await stage.scene.bury(job.id)

    assert (answer, tool.calls) == (("invalid_input", False), 0)
    assert (await stage.scene.letter(job.id)).effects_in_doubt == []


async def test_a_refused_second_call_does_not_make_one_forget_the_first(stage: Stage) -> None:
    job = await stage.scene.accept()
    refused = RetryableError(Category.UNAVAILABLE, "connection refused", nothing_happened=True)
    destination = Destination(lambda number: Receipt(call=number) if number == 1 else refused)
    await failed(stage.carry_out(job.id, destination, EffectClass.IDEMPOTENT, failing_at("effect.after_call")))
    await failed(stage.carry_out(job.id, destination, EffectClass.IDEMPOTENT, SECOND))

    await stage.scene.abandon(job.id)  # as an undo does, to find out whether there is anything to undo

    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN
