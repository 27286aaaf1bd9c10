"""Interleavings that the model found in an earlier state of the product, played on the product as it is."""

import asyncio
from typing import Any

from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.states import JobState
from agentjobs.ledger.effects import Begun
from agentjobs.tools.tool import ToolContext, ToolRegistry
from agentjobs.trackers.tracker import TicketReceipt
from tests.activities.stage import SECOND, Attempt, Destination, Stage, failed, failing_at, told
from tests.activities.test_undo import AskableTickets
from tests.fakes import TICKET
from tests.protocol.gates import Gate

RECONCILABLE = EffectClass.RECONCILABLE
THIRD = Attempt(number=3)


async def nothing_there(begun: Begun) -> None:
    """The destination's answer to a look-up."""


class SlowlyAskedTickets(AskableTickets):
    """A tracker that takes its time to say that it has no such ticket."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(found=None)
        self._gate = gate

    async def look_up(self, context: ToolContext) -> TicketReceipt | None:
        """When it is let."""
        await self._gate.pass_through()
        return await super().look_up(context)


async def doubted(stage: Stage) -> str:
    """A job whose effect was begun long ago, and never called."""
    job = await stage.scene.accept()
    await failed(stage.carry_out(job.id, Destination(), RECONCILABLE, failing_at("effect.before_call")))
    await stage.scene.execute("UPDATE effects SET sent_at = now() - interval '10 minutes'")
    return job.id


async def test_of_two_attempts_that_looked_up_the_same_doubt_one_sends(stage: Stage) -> None:
    job_id, destination, gate = await doubted(stage), Destination(), Gate()

    async def slowly(begun: Begun) -> None:
        await gate.pass_through()

    frozen = asyncio.create_task(stage.carry_out(job_id, destination, RECONCILABLE, SECOND, look_up=slowly))
    await gate.reached.wait()
    receipt = await stage.carry_out(job_id, destination, RECONCILABLE, THIRD, look_up=nothing_there)
    gate.open.set()

    assert (await told(frozen), receipt) == (("unavailable", True), {"call": 1})
    assert destination.calls == 1


async def test_an_undo_gives_up_no_effect_that_was_sent_again_after_it_was_looked_at(stage: Stage) -> None:
    job_id, destination, gate, gate_of_undo = await doubted(stage), Destination(), Gate(), Gate()

    async def slowly(begun: Begun) -> None:
        await gate.pass_through()

    dying = failing_at("effect.after_call", number=2)
    sends = asyncio.create_task(stage.carry_out(job_id, destination, RECONCILABLE, dying, look_up=slowly))
    await gate.reached.wait()
    undo = asyncio.create_task(stage.undo(job_id, tools=ToolRegistry((SlowlyAskedTickets(gate_of_undo),))))
    await gate_of_undo.reached.wait()
    gate.open.set()
    await failed(sends)
    gate_of_undo.open.set()

    assert (await told(undo), destination.calls) == (("unavailable", True), 1)
    assert (await stage.scene.effect(job_id)).state is EffectState.BEGUN


async def test_an_attempt_sends_nothing_after_an_undo_has_given_its_effect_up(stage: Stage) -> None:
    job_id, destination, gate = await doubted(stage), Destination(), Gate()

    async def slowly(begun: Begun) -> None:
        await gate.pass_through()

    frozen = asyncio.create_task(stage.carry_out(job_id, destination, RECONCILABLE, SECOND, look_up=slowly))
    await gate.reached.wait()
    outcome = await stage.undo(job_id, tools=ToolRegistry((AskableTickets(found=None),)))
    gate.open.set()

    assert (outcome, await told(frozen)) == ("nothing_to_undo", ("unavailable", True))
    assert destination.calls == 0


async def test_a_step_that_comes_late_to_a_job_that_is_being_undone_does_nothing(stage: Stage) -> None:
    job_id = await stage.scene.running()
    wanted = await stage.ask(job_id, "create_ticket", TICKET)

    outcome = await stage.undo(job_id)
    late = await told(stage.run_tool(job_id, wanted))
    ended = await stage.scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)

    assert (outcome, late, ended) == ("nothing_to_undo", ("cancel_requested", False), JobState.CANCELLED)
    assert await stage.scene.count("tickets") == 0
    assert _effects((await stage.scene.job(job_id)).result) == []


def _effects(result: dict[str, Any] | None) -> Any:
    assert result is not None
    return result["effects"]
