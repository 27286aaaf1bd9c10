"""Counterexamples of the model on the real executor and ledger: each play returns what is seen from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.dead_letters import Action
from agentjobs.ledger.effects import Begun
from agentjobs.tools.tool import ToolRegistry
from tests.activities.stage import SECOND, Attempt, Destination, Receipt, Stage, failing_at
from tests.activities.test_undo import AskableTickets
from tests.fakes import TICKET
from tests.ledger.scene import Scene
from tests.protocol.gates import Frozen, Gate

Play = Callable[[Stage], Awaitable[object]]
RECONCILABLE, UNSAFE = EffectClass.RECONCILABLE, EffectClass.UNSAFE
WORDS: tuple[Action, ...] = ("redrive", "discard")
LONG_AGO = "UPDATE effects SET sent_at = now() - interval '10 minutes'"


async def whatever_comes(attempt: Awaitable[object]) -> None:
    """Carry it out, and ask not how it went: what counts is what is there afterwards."""
    await asyncio.gather(attempt, return_exceptions=True)


async def nothing_there(begun: Begun) -> None:
    """The destination's answer to a look-up."""


async def doubted(stage: Stage) -> str:
    """A job whose effect was begun long ago, and never called."""
    job = await stage.scene.accept()
    await whatever_comes(stage.carry_out(job.id, Destination(), RECONCILABLE, failing_at("effect.before_call")))
    await stage.scene.execute(LONG_AGO)
    return job.id


async def asked_slowly(stage: Stage, job_id: str, destination: Destination) -> tuple[Gate, asyncio.Task[None]]:
    """An attempt that stands still while it looks its doubt up."""
    gate = Gate()

    async def slowly(begun: Begun) -> None:
        await gate.pass_through()

    attempt = stage.carry_out(job_id, destination, RECONCILABLE, SECOND, look_up=slowly)
    frozen = asyncio.create_task(whatever_comes(attempt))
    await gate.reached.wait()
    return gate, frozen


async def calls_of_two_who_looked_up(stage: Stage) -> int:
    """Both found that it is not there; the second dies after its call, then the first goes on."""
    job_id, destination = await doubted(stage), Destination()
    gate, frozen = await asked_slowly(stage, job_id, destination)
    third = failing_at("effect.after_call", number=3)
    await whatever_comes(stage.carry_out(job_id, destination, RECONCILABLE, third, look_up=nothing_there))
    gate.open.set()
    await frozen
    return destination.calls


async def calls_after_a_second_sending(stage: Stage) -> int:
    """The second attempt sends again and dies; the third looks up at once."""
    job_id, destination = await doubted(stage), Destination()
    second = failing_at("effect.after_call", number=2)
    await whatever_comes(stage.carry_out(job_id, destination, RECONCILABLE, second, look_up=nothing_there))
    third = Attempt(number=3)
    await whatever_comes(stage.carry_out(job_id, destination, RECONCILABLE, third, look_up=nothing_there))
    return destination.calls


async def effect_that_is_sent_while_it_is_undone(stage: Stage) -> object:
    """The undo has read it, the attempt sends again, the undo is told that it is not there."""
    job_id, destination = await doubted(stage), Destination(lambda _: RetryableError(Category.TIMEOUT, "no reply"))
    gate, sends = await asked_slowly(stage, job_id, destination)
    tool, asked = AskableTickets(found=None), Gate()
    look_up = tool.look_up

    async def slowly(context: Any) -> Any:
        await asked.pass_through()
        return await look_up(context)

    tool.look_up = slowly  # type: ignore[method-assign]
    undo = asyncio.create_task(whatever_comes(stage.undo(job_id, tools=ToolRegistry((tool,)))))
    await asked.reached.wait()
    gate.open.set()
    await sends
    asked.open.set()
    await undo
    return (await stage.scene.effect(job_id)).state


async def tickets_after_an_undo(stage: Stage) -> int:
    """A job is cancelled in Temporal, its undo finds nothing; then an attempt begins that was frozen."""
    job_id = await stage.scene.running()
    wanted = await stage.ask(job_id, "create_ticket", TICKET)
    await stage.undo(job_id)
    await whatever_comes(stage.run_tool(job_id, wanted))
    return await stage.scene.count("tickets")


async def tickets_of_an_attempt_that_was_given_up(stage: Stage) -> int:
    """An attempt of a transactional tool freezes after its begin, and the job is undone meanwhile."""
    job_id, frozen = await stage.scene.running(), Frozen("effect.after_begin")
    wanted = await stage.ask(job_id, "create_ticket", TICKET)
    late = asyncio.create_task(whatever_comes(stage.run_tool(job_id, wanted, Attempt(failpoints=frozen))))
    await frozen.gate.reached.wait()
    await whatever_comes(stage.undo(job_id))
    await stage.scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)
    frozen.gate.open.set()
    await late
    return await stage.scene.count("tickets")


async def calls_of_an_unsafe_tool_in_doubt(stage: Stage) -> int:
    """The first attempt dies after its call."""
    job, destination = await stage.scene.accept(), Destination()
    await whatever_comes(stage.carry_out(job.id, destination, UNSAFE, failing_at("effect.after_call")))
    await whatever_comes(stage.carry_out(job.id, destination, UNSAFE, SECOND))
    return destination.calls


async def effect_that_was_refused_the_second_time(stage: Stage) -> object:
    """The first attempt had its effect and died, the second certainly had none; then the job is undone."""
    job_id = await stage.scene.running()
    refused = RetryableError(Category.UNAVAILABLE, "connection refused", nothing_happened=True)
    destination = Destination(lambda number: Receipt(call=number) if number == 1 else refused)
    await whatever_comes(stage.carry_out(job_id, destination, attempt=failing_at("effect.after_call")))
    await whatever_comes(stage.carry_out(job_id, destination, attempt=SECOND))
    await whatever_comes(stage.undo(job_id))
    return (await stage.scene.effect(job_id)).state


async def answer_to_other_arguments(stage: Stage) -> object:
    """The same step comes with other arguments after it is done."""
    job, destination = await stage.scene.accept(), Destination()
    await stage.carry_out(job.id, destination)
    again = stage.carry_out(job.id, destination, attempt=SECOND, fingerprint="b" * 64)
    answers: list[object] = await asyncio.gather(again, return_exceptions=True)
    return answers[0] if isinstance(answers[0], dict) else "refused"


async def ticket_after_a_cancel(stage: Stage) -> int:
    """A cancel is asked for, and the workflow has not heard of it."""
    job_id = await stage.scene.running()
    wanted = await stage.ask(job_id, "create_ticket", TICKET)
    await stage.scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")
    await whatever_comes(stage.run_tool(job_id, wanted))
    return await stage.scene.count("tickets")


async def ticket_of_a_dead_job(stage: Stage) -> int:
    """A job is dead, and a late attempt of it begins."""
    job_id = await stage.scene.running()
    wanted = await stage.ask(job_id, "create_ticket", TICKET)
    await stage.scene.bury(job_id)
    await whatever_comes(stage.run_tool(job_id, wanted))
    return await stage.scene.count("tickets")


async def begins_of_a_step_that_crashes(stage: Stage) -> int:
    """Its worker dies of it each time."""
    job = await stage.scene.accept()
    for number in range(1, 12):
        await whatever_comes(stage.scene.begin(job.id, attempt=number))
    return await stage.scene.count("attempts")


async def generation_after_a_death_that_was_told_twice(stage: Stage) -> int:
    """The record of the death is made, and made again by an attempt that does not know."""
    job_id = await stage.scene.dead()
    await stage.scene.bury(job_id)
    return (await stage.scene.job(job_id)).generation


async def second_death(scene: Scene) -> str:
    """A job that was redriven and died again."""
    job_id = await scene.dead()
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await scene.bury(job_id, generation=1)
    return job_id


async def state_after_a_late_redrive(stage: Stage) -> object:
    """The record of the first redrive comes after the second death."""
    job_id = await second_death(stage.scene)
    state, _ = await stage.scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    return state


async def state_after_a_late_discard(stage: Stage) -> object:
    """The first death was to be discarded, its run was terminated, and the redrive of another person died."""
    job_id = await second_death(stage.scene)
    return await stage.scene.ledger.outcomes.finish(job_id, JobState.DISCARDED, generation=1)


async def words_that_are_heard(stage: Stage) -> list[str]:
    """Two people, one after the other."""
    job_id = await stage.scene.dead()
    await stage.scene.execute("DELETE FROM outbox")
    for action in WORDS:
        word = stage.scene.ledger.dead_letters.request(
            action, "acme", job_id, actor="rita", note="seen", payload={}
        )
        await whatever_comes(word)
    return await stage.scene.topics()
