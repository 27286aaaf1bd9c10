"""The ticket tool over the built-in tracker: one ticket an operation, together with its effect or not at all."""

import asyncio

import pytest

from agentjobs.domain import keys
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.effects import EffectState
from agentjobs.failpoints import Failpoints
from tests.activities.stage import SECOND, Attempt, Stage, failed, failing_at, told
from tests.fakes import TICKET
from tests.ledger.scene import CREATE_TICKET, Scene

IN_THE_TRANSACTION = failing_at("tool.in_transaction")


class Gate(Failpoints):
    """An attempt that sleeps between its begin and its call, until it is woken up."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep, self.woken = asyncio.Event(), asyncio.Event()

    async def reach(self, name: str) -> None:
        """Sleep at the one place."""
        if name == "effect.after_begin":
            self.asleep.set()
            await self.woken.wait()


async def test_a_job_that_is_run_twice_leaves_one_ticket(stage: Stage) -> None:
    j1 = await stage.scene.accept(id="j1")
    wanted = await stage.ask(j1.id, "create_ticket", TICKET)

    await stage.run_tool(j1.id, wanted)
    await stage.run_tool(j1.id, wanted, SECOND)

    assert await stage.scene.rows("SELECT job_id, operation_key, subject FROM tickets") == [
        {"job_id": "j1", "operation_key": "agent-job-j1/step-1.create_ticket", "subject": TICKET["subject"]}
    ]


async def test_a_job_that_is_run_ten_times_at_once_leaves_one_ticket(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)

    await asyncio.gather(*(stage.run_tool(job.id, wanted, Attempt(number=number)) for number in range(1, 11)))

    assert await stage.scene.count("tickets") == 1
    assert (await stage.scene.events(job.id)).count("step_completed") == 2  # the model's step, and the ticket's


async def test_the_receipt_names_the_ticket(stage: Stage) -> None:
    job = await stage.scene.accept()

    await stage.run_tool(job.id, await stage.ask(job.id, "create_ticket", TICKET))

    number = (await stage.scene.rows("SELECT id FROM tickets"))[0]["id"]
    assert (await stage.scene.effect(job.id)).result == {"id": f"T-{number}", "url": None}


@pytest.mark.parametrize("subject", ["", "   ", "\n\t", "\u3000"])
async def test_an_empty_subject_is_permanent_with_its_reason_and_no_ticket(stage: Stage, subject: str) -> None:
    j2 = await stage.scene.accept(id="j2")
    wanted = await stage.ask(j2.id, "create_ticket", {**TICKET, "subject": subject, "body": "s3cr3t"})

    error = await failed(stage.run_tool(j2.id, wanted))

    assert (error.type, error.non_retryable) == ("invalid_input", True)
    assert "subject" in error.message
    assert "s3cr3t" not in error.message
    effect = await stage.scene.effect(j2.id)
    assert (await stage.scene.count("tickets"), effect.state, effect.result) == (0, EffectState.RELEASED, None)
    assert (await stage.scene.outcomes(j2.id))[-1] == ("failed", "invalid_input")


async def test_the_same_key_with_another_subject_is_a_conflict_that_names_fingerprints_only(stage: Stage) -> None:
    job = await stage.scene.accept()
    first = await stage.ask(job.id, "create_ticket", TICKET)
    await stage.run_tool(job.id, first)
    other = _with_another_subject()

    error = await failed(stage.run_tool(job.id, other, SECOND))

    assert (error.type, error.non_retryable) == ("key_conflict", True)
    assert first.fingerprint[:16] in error.message
    assert other.fingerprint[:16] in error.message
    assert "Printer" not in f"{error.message} {error.details}"
    assert [row["subject"] for row in await stage.scene.rows("SELECT subject FROM tickets")] == [TICKET["subject"]]


async def test_arguments_that_the_model_did_not_ask_for_are_a_conflict_too(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.ask(job.id, "create_ticket", TICKET)

    answer = await told(stage.run_tool(job.id, _with_another_subject()))

    assert answer == ("key_conflict", False)
    assert await stage.scene.count("tickets") == 0


async def test_a_failure_inside_the_transaction_leaves_no_part_of_the_effect(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)

    answer = await told(stage.run_tool(job.id, wanted, IN_THE_TRANSACTION))

    effect = await stage.scene.effect(job.id)
    assert answer == ("unavailable", True)
    assert (await stage.scene.count("tickets"), effect.state, effect.result) == (0, EffectState.RELEASED, None)
    assert (await stage.scene.events(job.id)).count("step_completed") == 1  # the model's step


async def test_after_a_failure_inside_the_transaction_the_next_attempt_leaves_one_ticket(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await failed(stage.run_tool(job.id, wanted, IN_THE_TRANSACTION))

    await stage.run_tool(job.id, wanted, SECOND)

    assert await _tickets_and_effect(stage.scene, job.id) == (1, EffectState.COMPLETED)
    assert (await stage.scene.outcomes(job.id))[-2:] == [("failed", "unavailable"), ("succeeded", None)]


async def test_an_attempt_that_dies_after_the_commit_repeats_nothing(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    await failed(stage.run_tool(job.id, wanted, failing_at("tool.after_commit")))
    first = await stage.scene.effect(job.id)

    await stage.run_tool(job.id, wanted, SECOND)

    effect = await stage.scene.effect(job.id)
    assert (effect.result, effect.completed_at) == (first.result, first.completed_at)
    assert await _tickets_and_effect(stage.scene, job.id) == (1, EffectState.COMPLETED)
    assert (await stage.scene.outcomes(job.id))[-1] == ("succeeded", None)  # its report was late, not its effect


async def test_a_late_attempt_cannot_create_what_was_given_up(stage: Stage) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    gate = Gate()
    late = asyncio.create_task(stage.run_tool(job.id, wanted, Attempt(failpoints=gate)))
    await gate.asleep.wait()
    await stage.scene.abandon(job.id)
    gate.woken.set()

    answer = await told(late)

    assert answer == ("outcome_unknown", False)
    assert await _tickets_and_effect(stage.scene, job.id) == (0, EffectState.ABANDONED)


async def test_an_attempt_that_slept_through_anothers_failure_leaves_both_or_nothing(
    stage: Stage,
) -> None:
    job = await stage.scene.accept()
    wanted = await stage.ask(job.id, "create_ticket", TICKET)
    gate = Gate()
    late = asyncio.create_task(stage.run_tool(job.id, wanted, Attempt(failpoints=gate)))
    await gate.asleep.wait()
    await failed(stage.run_tool(job.id, wanted, failing_at("tool.in_transaction", number=2)))
    gate.woken.set()

    await asyncio.gather(late, return_exceptions=True)

    tickets, state = await _tickets_and_effect(stage.scene, job.id)
    assert tickets == (1 if state is EffectState.COMPLETED else 0)


async def test_without_the_grant_there_is_no_ticket(stage: Stage) -> None:
    job = await stage.scene.accept(user="bob")
    wanted = await stage.ask(job.id, "create_ticket", TICKET)

    answer = await told(stage.run_tool(job.id, wanted))

    assert answer == ("access_denied", False)
    assert await stage.scene.count("tickets") == 0


async def test_a_tool_that_the_agent_has_not_is_unknown(stage: Stage) -> None:
    job = await stage.scene.accept()

    answer = await told(stage.run_tool(job.id, WantedTool(tool="launch_rocket", fingerprint="f" * 64)))

    assert answer == ("unknown_tool", False)
    assert await stage.scene.count("effects") == 0


async def test_a_step_that_no_model_asked_for_is_not_run(stage: Stage) -> None:
    job = await stage.scene.accept()
    fingerprint = keys.fingerprint_of_call("create_ticket", dict(TICKET))

    answer = await told(stage.run_tool(job.id, WantedTool(tool="create_ticket", fingerprint=fingerprint)))

    assert answer == ("not_found", False)
    assert await stage.scene.count("tickets") == 0


def _with_another_subject() -> WantedTool:
    other = {**TICKET, "subject": "Printer on fire again"}
    return WantedTool(tool="create_ticket", fingerprint=keys.fingerprint_of_call("create_ticket", dict(other)))


async def _tickets_and_effect(scene: Scene, job_id: str) -> tuple[int, EffectState]:
    return await scene.count("tickets"), (await scene.effect(job_id, CREATE_TICKET)).state
