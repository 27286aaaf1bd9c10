"""What the outbox asks for, told to a real Temporal server: twice if need be, without a second consequence."""

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.domain import keys
from agentjobs.domain.failures import Category, PermanentError, failure
from agentjobs.domain.states import JobState
from agentjobs.failpoints import FailpointError
from agentjobs.providers.model import AnswerReply, Brief, Listener
from tests.fakes import ScriptedProvider
from tests.world import World, eventually


class GatedProvider(ScriptedProvider):
    """The first answer is held until the gate opens, and then refused."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def answer(self, brief: Brief, listener: Listener | None = None) -> AnswerReply:
        """As scripted, once the gate was opened."""
        if not self.gate.is_set():
            await self._called("answer")
            await self.gate.wait()
            raise PermanentError(Category.CONTENT_REFUSED, "no")
        return await super().answer(brief, listener)


async def test_a_start_is_a_workflow_with_the_jobs_own_id(world: World) -> None:
    job_id = await world.submit()

    await world.relay().start_once()

    described = await world.workflow(job_id).describe()
    assert (described.id, described.workflow_type) == (keys.workflow_id(job_id), "AgentJob")
    assert described.status is WorkflowExecutionStatus.RUNNING
    assert await _topics(world) == []


async def test_a_start_delivered_again_after_a_crash_is_one_run(world: World) -> None:
    world.failpoints = "outbox.after_start=raise@1"
    job_id = await world.submit()
    relay = world.relay()
    with pytest.raises(FailpointError):
        await relay.start_once()
    first, waiting = await world.workflow(job_id).describe(), await _topics(world)

    delivered = await relay.start_once()

    assert (waiting, delivered) == (["start_job"], 1)
    assert (await world.workflow(job_id).describe()).run_id == first.run_id


async def test_a_start_delivered_again_after_the_job_is_over_starts_nothing(world: World) -> None:
    job_id = await world.submit()
    await world.relay().start_once()
    await world.workflow(job_id).terminate()
    await world.ledger.database.pool.execute(
        "INSERT INTO outbox (topic, job_id, tenant) VALUES ('start_job', $1, $2)", job_id, world.tenant
    )

    delivered = await world.relay().start_once()

    assert delivered == 1
    assert (await world.workflow(job_id).describe()).status is WorkflowExecutionStatus.TERMINATED


async def test_two_relays_at_once_start_each_job_once(world: World) -> None:
    jobs = [await world.submit() for _ in range(10)]

    delivered = await asyncio.gather(*(world.relay().start_once() for _ in range(2)))

    assert sorted(delivered) == [0, 10]
    described = [await world.workflow(job_id).describe() for job_id in jobs]
    assert {one.status for one in described} == {WorkflowExecutionStatus.RUNNING}


async def test_a_job_cancelled_while_pending_is_not_started(world: World) -> None:
    job_id = await world.submit()
    await world.cancel(job_id)

    delivered = await world.relay().start_once()

    assert delivered == 1
    assert await _is_unknown(world.workflow(job_id))


async def test_an_agent_that_no_release_knows_ends_dead_and_the_job_behind_it_starts(world: World) -> None:
    lost, behind = await world.submit(), await world.submit()
    await world.ledger.database.pool.execute("UPDATE jobs SET agent = 'gone' WHERE id = $1", lost)

    await world.relay().start_once()

    assert (await world.job(lost)).state is JobState.DEAD
    assert await _is_unknown(world.workflow(lost))
    assert (await world.workflow(behind).describe()).status is WorkflowExecutionStatus.RUNNING


async def test_a_cancel_that_overtakes_its_start_is_delivered_again_later(world: World) -> None:
    job_id = await world.submit()
    await world.ledger.database.pool.execute("UPDATE jobs SET state = 'running' WHERE id = $1", job_id)
    await world.cancel(job_id)
    relay = world.relay()

    too_early = await relay.command_once()
    await relay.start_once()
    await world.ledger.database.pool.execute("UPDATE outbox SET available_at = now()")
    in_time = await relay.command_once()

    assert (too_early, in_time) == (0, 1)
    assert await _topics(world) == []
    events = [event async for event in world.workflow(job_id).fetch_history_events()]
    assert any(event.HasField("workflow_execution_cancel_requested_event_attributes") for event in events)


async def test_a_cancel_of_a_job_that_ended_without_a_workflow_is_dropped(world: World) -> None:
    job_id = await world.submit()
    await world.ledger.database.pool.execute("UPDATE jobs SET state = 'running' WHERE id = $1", job_id)
    await world.cancel(job_id)
    await world.ledger.outcomes.finish(job_id, JobState.CANCELLED)

    assert await world.relay().command_once() == 1
    assert await _topics(world) == ["start_job"]


async def test_a_redrive_that_overtakes_the_death_is_delivered_again_later(world: World) -> None:
    provider = GatedProvider()
    job_id = await world.submit()

    async with world.running(provider):
        await provider.reached("answer")
        # The ledger has the death, and its workflow has not heard of it: as when its worker died in between.
        died_of = failure(Category.CONTENT_REFUSED, "no", keys.ANSWER)
        await world.ledger.outcomes.bury(job_id, generation=0, failure=died_of, worker="w0")
        await world.order("redrive", job_id)
        try:
            await _until_put_off(world)
            refused_for_now = await world.job(job_id)
        finally:
            provider.gate.set()  # a worker waits for its activities when it ends
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert refused_for_now.state is JobState.DEAD
    assert (job.generation, await world.ticket_count()) == (1, 1)


async def test_a_word_that_was_carried_out_already_is_dropped(world: World) -> None:
    job_id = await world.submit()
    died_of = failure(Category.ACCESS_DENIED, "no")
    await world.ledger.outcomes.bury(job_id, generation=0, failure=died_of, worker="w0")
    await world.order("redrive", job_id)
    await world.ledger.outcomes.resume(job_id, generation=1, policy_version="1")

    await world.relay().command_once()

    assert await _topics(world) == ["start_job", "job_died"]
    assert await _is_unknown(world.workflow(job_id))


async def test_a_death_that_is_told_twice_is_one_notice_to_one_desk(world: World) -> None:
    job_id = await world.submit()
    died_of = failure(Category.ACCESS_DENIED, "no")
    await world.ledger.outcomes.bury(job_id, generation=0, failure=died_of, worker="w0")
    world.failpoints = "outbox.after_start=raise@1"
    relay = world.relay()
    with pytest.raises(FailpointError):
        await relay.desk_once()
    await relay.desk_once()

    async with world.running():
        letter = await world.until_alerted(job_id)
        desk = world.client.get_workflow_handle(keys.desk_id(world.tenant))

        async def nothing_waits() -> bool:
            return not await desk.query("waiting_notices")  # told in the ledger a moment before

        await eventually(nothing_waits, "the desk to be done with the notice")
    alerts = await world.ledger.database.pool.fetch("SELECT letter_count FROM alerts")

    assert (letter.generation, [alert["letter_count"] for alert in alerts]) == (1, [1])


async def _topics(world: World) -> list[str]:
    rows = await world.ledger.database.pool.fetch("SELECT topic FROM outbox ORDER BY id")
    return [row["topic"] for row in rows]


async def _until_put_off(world: World) -> None:
    async def look() -> bool:
        return bool(
            await world.ledger.database.pool.fetchval(
                "SELECT true FROM outbox WHERE topic = 'redrive_job' AND attempts > 0 AND last_error = 'NotYet'"
            )
        )

    await eventually(look, "the redrive to be put off")


async def _is_unknown(workflow: WorkflowHandle[object, object]) -> bool:
    try:
        await workflow.describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    return False
