"""What a worker that is gone tells nobody any more is told in its place: its attempt, and the end of its run."""

from datetime import UTC
from typing import Any

from agentjobs.domain import keys
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.outbox.burying import bury
from agentjobs.outbox.lost_spans import attempt_lost
from tests.fakes import ScriptedProvider
from tests.tracing.test_jobs import attempts, tree_of
from tests.tracing.told import Told
from tests.world import World, eventually


async def pending(world: World, job_id: str) -> tuple[str, Any]:
    """The run of Temporal's, and its activity that is under way."""

    async def look() -> tuple[str, Any] | None:
        described = await world.workflow(job_id).describe()
        found = [one for one in described.raw_description.pending_activities if one.HasField("last_started_time")]
        return (described.run_id or "", found[0]) if found else None

    return await eventually(look, "an activity under way", world.between)


async def test_a_lost_attempt_is_the_span_that_its_worker_would_have_told(traced_world: World, told: Told) -> None:
    provider = ScriptedProvider()
    provider.hold_at("plan")

    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await provider.reached("plan")
        run_id, activity = await pending(traced_world, job_id)
        trace = await traced_world.ledger.jobs.trace(job_id)
        assert trace is not None
        attempt_lost(trace, run_id, activity)
        provider.release()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    lost, alive = sorted(tree.named("attempt plan"), key=lambda one: one.ended)
    assert (lost.span_id, lost.parent_id) == (alive.span_id, alive.parent_id)
    assert (lost.error, alive.error) == ("worker_lost", None)
    assert {**lost.attributes, "error.type": None} == {**alive.attributes, "error.type": None}
    started = activity.last_started_time.ToDatetime(tzinfo=UTC).timestamp()
    assert abs(lost.began / 1e9 - started) < 0.001
    assert tree.orphans() == []


async def test_a_run_that_was_ended_by_force_is_told_by_who_buries_its_job(
    traced_world: World, told: Told
) -> None:
    provider = ScriptedProvider()
    provider.hold_at("answer")

    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await provider.reached("answer")
        standing = await traced_world.ledger.jobs.standing(job_id)
        assert standing is not None
        await traced_world.workflow(job_id).terminate()
        await bury(traced_world.ledger, standing, Category.TERMINATED, "its workflow was ended by force")
        tree = await tree_of(traced_world, told, job_id)

    run = tree.one("run support-triage")
    assert (run.error, run.attributes["agentjobs.job.state"]) == ("terminated", JobState.DEAD)
    assert run.parent_id == tree.one("outbox start_job").span_id
    assert [step for step, *_ in attempts(tree, run)][:2] == ["plan", "step-1.model"]
    assert tree.one("outbox start_job").attributes["temporalWorkflowID"] == keys.workflow_id(job_id)


async def test_nothing_is_told_of_a_burial_that_came_too_late(traced_world: World, told: Told) -> None:
    async with traced_world.running():
        job_id = await traced_world.submit()
        standing = await traced_world.ledger.jobs.standing(job_id)
        assert standing is not None
        await traced_world.until(job_id)
        await tree_of(traced_world, told, job_id)

    assert not await bury(traced_world.ledger, standing, Category.TERMINATED, "too late")
    assert len(told.tree((await traced_world.job(job_id)).trace_id).named("run support-triage")) == 1
