"""Around every call: what is refused before it, what cuts it off, and attempts that come late."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from activities.executor import Reply
from agentjobs.domain.effects import EffectClass, EffectState
from agentjobs.domain.states import JobState
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun
from tests.activities.stage import (
    SECOND,
    Attempt,
    Destination,
    Receipt,
    Stage,
    failed,
    told,
)


async def test_the_same_key_with_other_arguments_is_a_conflict_that_calls_nothing(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination = Destination()
    await stage.carry_out(job.id, destination)

    answer = await told(stage.carry_out(job.id, destination, attempt=SECOND, fingerprint="b" * 64))

    assert (answer, destination.calls) == (("key_conflict", False), 1)


async def test_without_the_grant_nothing_is_called(stage: Stage) -> None:
    job = await stage.scene.accept(user="bob")
    destination = Destination()

    answer = await told(stage.carry_out(job.id, destination, grant="tickets:create"))

    assert (answer, destination.calls) == (("access_denied", False), 0)
    assert await stage.scene.outcomes(job.id) == [("failed", "access_denied")]


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED])
async def test_of_a_job_that_is_over_the_workflow_is_told_its_state(stage: Stage, state: JobState) -> None:
    job = await stage.scene.accept()
    await stage.scene.move(job.id, state)
    destination = Destination()

    error = await failed(stage.carry_out(job.id, destination))

    assert (error.type, error.non_retryable, list(error.details)) == ("job_over", True, [state])
    assert destination.calls == 0


async def test_after_a_cancel_was_asked_for_the_workflow_is_told_so(stage: Stage) -> None:
    job_id = await stage.scene.running()
    await stage.scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")
    destination = Destination()

    answer = await told(stage.carry_out(job_id, destination))

    assert (answer, destination.calls) == (("cancel_requested", False), 0)


async def test_a_call_that_outlasts_the_deadline_is_cut_off_by_it(stage: Stage) -> None:
    job = await stage.scene.accept()
    await stage.scene.execute("UPDATE jobs SET deadline_at = now() + interval '100 milliseconds'")

    async def endless(begun: Begun, _: object) -> Reply:
        await asyncio.Event().wait()
        return Reply(Receipt(call=1))

    error = await failed(stage.carry_out(job.id, endless))

    assert (error.type, error.non_retryable) == ("deadline_exceeded", True)
    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN  # it may have landed


async def test_an_attempt_whose_time_is_up_before_the_call_sends_nothing(stage: Stage) -> None:
    job = await stage.scene.accept()
    destination = Destination()

    frozen = Attempt(start_to_close=timedelta(microseconds=1))
    answer = await told(stage.carry_out(job.id, destination, EffectClass.UNSAFE, frozen))

    assert (answer, destination.calls) == (("timeout", True), 0)
    assert await stage.carry_out(job.id, destination, EffectClass.UNSAFE, SECOND) == {"call": 1}


async def test_a_cancellation_passes_through_and_leaves_a_doubt(stage: Stage) -> None:
    job = await stage.scene.accept()
    attempt = Attempt()
    environment = attempt.environment("step-1.create_ticket")

    async def cut_off(begun: Begun, _: object) -> Reply:
        environment.cancel()
        await asyncio.Event().wait()
        return Reply(Receipt(call=1))

    with pytest.raises(asyncio.CancelledError):
        await stage.carry_out(job.id, cut_off, environment=environment)

    assert (await stage.scene.effect(job.id)).state is EffectState.BEGUN
    assert await stage.scene.outcomes(job.id) == [("abandoned", None)]


async def test_a_long_call_heartbeats(stage: Stage) -> None:
    job = await stage.scene.accept()
    beaten = asyncio.Event()
    environment = Attempt(heartbeat=timedelta(seconds=0.05)).environment("step-1.create_ticket")
    environment.on_heartbeat = lambda *_: beaten.set()

    async def until_the_first_beat(begun: Begun, _: object) -> Reply:
        await asyncio.wait_for(beaten.wait(), timeout=5)
        return Reply(Receipt(call=1))

    assert await stage.carry_out(job.id, until_the_first_beat, environment=environment) == {"call": 1}


async def test_of_two_live_attempts_both_return_the_first_receipt(stage: Stage) -> None:
    job = await stage.scene.accept()
    calling, second_is_done = asyncio.Event(), asyncio.Event()
    destination = Destination()

    async def slow(begun: Begun, connection: Connection | None) -> Reply:
        calling.set()
        await second_is_done.wait()
        return await destination(begun, connection)

    late = asyncio.create_task(stage.carry_out(job.id, slow))
    await calling.wait()
    first = await stage.carry_out(job.id, destination, attempt=SECOND)
    second_is_done.set()

    assert await late == first == {"call": 1}
    assert destination.calls == 2  # both may call: the destination honours the key
