"""A cancel while a call is in flight: a model's is cut off at once, a tool's is not, and neither is a failure."""

import asyncio

import pytest

from activities.executor import Executor, Reply, Work
from activities.inputs import JobRef
from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.ledger.effects import Begun
from agentjobs.providers.model import Brief, Listener
from tests.activities.asked import PlayedProvider, ask_for_plan, model_calls
from tests.activities.stage import FIRST, SECOND, Receipt, Stage, failed, reference
from tests.ledger.scene import CREATE_TICKET
from tests.world import NoFence


class Held:
    """A call that comes to no end by itself, and says how it was ended."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.go = asyncio.Event()
        self.cut_off = False

    async def __call__(self, *_: object) -> None:
        """Wait until released or cut off."""
        self.called.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cut_off = True
            raise


async def under_way(stage: Stage, job_id: str, held: Held, present: NoFence) -> asyncio.Task[object]:
    """A plan that is being asked for."""
    calls = model_calls(stage, {"scripted": PlayedProvider(held)}, present=present)
    running = asyncio.create_task(FIRST.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job_id))))
    await held.called.wait()
    return running


async def test_a_model_call_is_cut_off_and_the_workflow_told_of_the_cancel(stage: Stage) -> None:
    job = await stage.scene.accept()
    held, present = Held(), NoFence()
    running = await under_way(stage, job.id, held, present)

    present.no_longer(job.id)
    error = await failed(running)

    assert held.cut_off
    assert (error.type, error.non_retryable) == ("cancel_requested", True)
    assert await stage.scene.outcomes(job.id) == [("abandoned", None)]
    assert (await stage.scene.job(job.id)).state is JobState.RUNNING  # not retry_wait: no attempt follows


async def test_what_it_may_have_cost_stays_held_back(stage: Stage) -> None:
    job = await stage.scene.accept()
    held, present = Held(), NoFence()
    running = await under_way(stage, job.id, held, present)

    present.no_longer(job.id)
    await failed(running)

    assert (await stage.scene.job(job.id)).tokens_reserved == 16_000


async def test_another_jobs_call_goes_on(stage: Stage) -> None:
    job, other = await stage.scene.accept(), await stage.scene.accept()
    present = NoFence()
    cancelled, going_on = Held(), Held()
    ending = await under_way(stage, job.id, cancelled, present)
    running = await under_way(stage, other.id, going_on, present)

    present.no_longer(job.id)
    await failed(ending)
    going_on.go.set()
    await running

    assert (cancelled.cut_off, going_on.cut_off) == (True, False)
    assert await stage.scene.outcomes(other.id) == [("succeeded", None)]


async def test_a_word_on_a_job_without_a_call_or_after_it_is_harmless(stage: Stage) -> None:
    job = await stage.scene.accept()
    held, present = Held(), NoFence()
    present.no_longer(job.id)
    running = await under_way(stage, job.id, held, present)
    held.go.set()
    await running

    present.no_longer(job.id)
    present.no_longer("unheard-of")

    assert await stage.scene.outcomes(job.id) == [("succeeded", None)]


async def test_the_same_word_twice_is_harmless(stage: Stage) -> None:
    job = await stage.scene.accept()
    present, cleaning, clean = NoFence(), asyncio.Event(), asyncio.Event()

    async def slow_to_let_go(_: Brief, _listener: Listener) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await clean.wait()

    held = Held()

    async def call(brief: Brief, listener: Listener) -> None:
        held.called.set()
        await slow_to_let_go(brief, listener)

    calls = model_calls(stage, {"scripted": PlayedProvider(call)}, present=present)
    running = asyncio.create_task(FIRST.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job.id))))
    await held.called.wait()
    present.no_longer(job.id)
    await cleaning.wait()

    try:
        present.no_longer(job.id)
    finally:
        clean.set()
        error = await failed(running)

    assert error.type == "cancel_requested"


async def test_a_tool_call_is_not_cut_off(stage: Stage) -> None:
    job = await stage.scene.accept()
    called, go = asyncio.Event(), asyncio.Event()
    present = NoFence()

    async def slow(_begun: Begun, _: object) -> Reply:
        called.set()
        await go.wait()
        return Reply(Receipt(call=1))

    executor = Executor(stage.scene.ledger, FIRST.failpoints, present)

    async def activity() -> object:
        intent = executor.intent(
            CREATE_TICKET,
            JobRef(**reference(job.id)),
            kind=EffectKind.TOOL,
            name="create_ticket",
            effect_class=EffectClass.UNSAFE,
            fingerprint="f" * 64,
        )
        return await executor.carry_out(intent, Work(slow))

    running = asyncio.create_task(FIRST.environment(CREATE_TICKET).run(activity))
    await called.wait()
    present.no_longer(job.id)
    for _ in range(10):
        await asyncio.sleep(0)  # time enough for what would cut it off
    go.set()

    assert await running == {"call": 1}
    assert await stage.scene.outcomes(job.id) == [("succeeded", None)]


async def test_a_cancelled_activity_leaves_an_attempt_that_was_cut_off_and_does_not_count(stage: Stage) -> None:
    job = await stage.scene.accept()
    held, present = Held(), NoFence()
    environment = FIRST.environment(keys.PLAN)
    calls = model_calls(stage, {"scripted": PlayedProvider(held)}, present=present)
    running = asyncio.create_task(environment.run(calls.plan, JobRef(**reference(job.id))))
    await held.called.wait()

    environment.cancel()  # by Temporal, or because the worker stops
    with pytest.raises(asyncio.CancelledError):
        await running
    await ask_for_plan(stage, job.id, PlayedProvider(), attempt=SECOND)

    assert held.cut_off
    assert await stage.scene.outcomes(job.id) == [("abandoned", None), ("succeeded", None)]


async def test_a_tool_call_that_is_cut_off_by_temporal_stays_in_doubt(stage: Stage) -> None:
    job = await stage.scene.accept()
    held = Held()
    environment = FIRST.environment(CREATE_TICKET)

    async def call(_begun: Begun, _: object) -> Reply:
        await held()
        return Reply(Receipt(call=1))

    running = asyncio.create_task(stage.carry_out(job.id, call, environment=environment))
    await held.called.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN
    assert (await stage.scene.begin(job.id, attempt=2)).in_doubt


async def test_a_failure_of_the_providers_own_is_not_taken_for_a_cancel(stage: Stage) -> None:
    job = await stage.scene.accept()

    async def too_slow(_: Brief, _listener: Listener) -> None:
        raise RetryableError(Category.TIMEOUT, "the model took too long")

    async def a_timeout(_: Brief, _listener: Listener) -> None:
        raise TimeoutError

    first = await failed(ask_for_plan(stage, job.id, PlayedProvider(too_slow)))
    second = await failed(ask_for_plan(stage, job.id, PlayedProvider(a_timeout), attempt=SECOND))

    assert (first.type, second.type) == ("timeout", "timeout")
    assert [outcome for outcome, _ in await stage.scene.outcomes(job.id)] == ["failed", "failed"]


async def test_no_step_of_a_cancelled_job_begins(stage: Stage) -> None:
    job_id = await stage.scene.running()
    provider = PlayedProvider()
    await stage.scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")

    error = await failed(ask_for_plan(stage, job_id, provider))

    assert (error.type, provider.briefs) == ("cancel_requested", [])


async def test_an_undo_of_a_cancelled_job_begins(stage: Stage) -> None:
    job_id = await stage.scene.running()
    await stage.scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")

    begun = await stage.scene.begin(job_id, keys.undo_step(CREATE_TICKET), kind="undo")

    assert begun.attempt_id is not None
