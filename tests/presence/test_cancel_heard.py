"""A cancel is heard by the worker through the database, and its model call ends at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from activities.inputs import JobRef
from agentjobs.domain import keys
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.presence import Presence
from tests.activities.asked import PlayedProvider, model_calls
from tests.activities.stage import FIRST, Stage, failed, reference
from tests.ledger.scene import Scene
from tests.world import eventually

_LISTENS = (
    "FROM pg_stat_activity WHERE application_name = 'agentjobs-worker-presence' AND datname = current_database()"
)
AT_ONCE_SECONDS = 5.0
"""Far less than the heartbeats by which a cancel arrives otherwise, and enough for a busy machine."""


@dataclass
class Call:
    """A model call that comes to no end by itself."""

    called: asyncio.Event = field(default_factory=asyncio.Event)
    cut_off: asyncio.Event = field(default_factory=asyncio.Event)
    cut_off_at: float = 0.0

    async def __call__(self, *_: object) -> None:
        """Wait for ever; say when it is cut off."""
        self.called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cut_off_at = asyncio.get_running_loop().time()
            self.cut_off.set()
            raise


@pytest.fixture
async def stage(ledger: Ledger) -> Stage:
    """A tenant in this test's own database."""
    return Stage(await Scene.set_up(ledger))


@pytest.fixture
async def present(ledger: Ledger, database_url: str) -> AsyncIterator[Presence]:
    """A worker that is there."""
    async with Presence(database_url, ledger.workers, "w").held() as held:
        yield held


@asynccontextmanager
async def in_flight(
    stage: Stage, present: Presence, job_id: str
) -> AsyncIterator[tuple[Call, asyncio.Task[object]]]:
    """A model call of the job while the block runs."""
    call = Call()
    calls = model_calls(stage, {"scripted": PlayedProvider(call)}, present=present)
    running = asyncio.create_task(FIRST.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job_id))))
    called = asyncio.create_task(call.called.wait())
    await asyncio.wait({running, called}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    try:
        yield call, running
    finally:
        running.cancel()
        called.cancel()
        await asyncio.gather(running, called, return_exceptions=True)


async def cancel(stage: Stage, job_id: str) -> JobState | None:
    """The owner's wish."""
    return await stage.scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")


async def test_a_cancel_ends_the_model_call_at_once(stage: Stage, present: Presence) -> None:
    job = await stage.scene.accept()

    async with in_flight(stage, present, job.id) as (call, running):
        await cancel(stage, job.id)
        await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)
        error = await failed(running)

    assert (error.type, error.non_retryable) == ("cancel_requested", True)
    assert await stage.scene.outcomes(job.id) == [("abandoned", None)]
    assert await stage.scene.events(job.id) == ["accepted", "started", "cancel_requested"]


async def test_another_jobs_call_and_another_workers_goes_on(
    stage: Stage, present: Presence, ledger: Ledger, database_url: str
) -> None:
    job, other, third = [await stage.scene.accept() for _ in range(3)]

    async with (
        Presence(database_url, ledger.workers, "w2").held() as second,
        in_flight(stage, present, job.id) as (call, _),
        in_flight(stage, present, other.id) as (going_on, _),
        in_flight(stage, second, third.id) as (elsewhere, _),
    ):
        await cancel(stage, job.id)
        await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)
        await everybody_has_heard(stage, present, second)

        assert not going_on.cut_off.is_set()
        assert not elsewhere.cut_off.is_set()


async def test_whichever_worker_has_the_call_hears_of_it(
    stage: Stage, present: Presence, ledger: Ledger, database_url: str
) -> None:
    job = await stage.scene.accept()

    async with (
        Presence(database_url, ledger.workers, "w2").held() as second,
        in_flight(stage, second, job.id) as (call, _),
    ):
        await cancel(stage, job.id)
        await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)

    assert call.cut_off.is_set()


async def test_a_tool_call_goes_on(stage: Stage, present: Presence) -> None:
    job_id = await stage.scene.running()
    heard: list[str] = []

    async def tool() -> str:
        async with present.while_wanted(job_id, EffectKind.TOOL):
            await cancel(stage, job_id)
            await everybody_has_heard(stage, present)
            heard.append(job_id)
        return "done"

    assert await tool() == "done"
    assert heard == [job_id]


async def everybody_has_heard(stage: Stage, *workers: Presence) -> None:
    """Whatever was told before has arrived too: words arrive in their order."""
    for worker in workers:
        job_id = (await stage.scene.accept()).id
        async with in_flight(stage, worker, job_id) as (call, _):
            await cancel(stage, job_id)
            await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)


async def test_a_session_that_was_cut_off_hears_again(stage: Stage, present: Presence) -> None:
    job = await stage.scene.accept()
    before = await listening(stage)
    await stage.scene.execute(f"SELECT pg_terminate_backend(pid) {_LISTENS}")

    async def back() -> bool:
        now = await listening(stage)
        return bool(now) and not now & before

    await eventually(back, "the worker to listen again")

    async with in_flight(stage, present, job.id) as (call, running):
        await cancel(stage, job.id)
        await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)
        error = await failed(running)

    assert error.type == "cancel_requested"


async def test_a_worker_that_was_given_up_still_hears(stage: Stage, present: Presence) -> None:
    job, first = await stage.scene.accept(), present.id
    await stage.scene.ledger.workers.mark_lost({first})

    async def renamed() -> bool:
        return present.id != first

    await eventually(renamed, "a new id")

    async with in_flight(stage, present, job.id) as (call, _):
        await cancel(stage, job.id)
        await asyncio.wait_for(call.cut_off.wait(), AT_ONCE_SECONDS)

    assert call.cut_off.is_set()


async def test_a_job_that_had_not_begun_is_not_called_out(stage: Stage, present: Presence) -> None:
    pending, job = await stage.scene.accept(), await stage.scene.accept()

    state = await cancel(stage, pending.id)
    async with in_flight(stage, present, job.id) as (call, _):
        await everybody_has_heard(stage, present)

        assert state is JobState.CANCELLED
        assert not call.cut_off.is_set()


async def listening(stage: Stage) -> set[int]:
    """The sessions that hear of cancels: they listen first, and then look whether they are given up."""
    return {row["pid"] for row in await stage.scene.rows(f"SELECT pid {_LISTENS} AND query LIKE '%lost_at%'")}
