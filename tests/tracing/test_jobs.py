"""The spans of whole jobs: one trace for each, over retries, deaths, redrives and replays."""

from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.states import JobState
from tests.fakes import ScriptedProvider
from tests.tracing.told import Span, Told, Tree
from tests.world import World, eventually

IN_TROUBLE = RetryableError(Category.UNAVAILABLE, "canary-text-of-an-error", retry_after_seconds=0.01)
REFUSES = PermanentError(Category.ACCESS_DENIED, "canary-text-of-an-error")


async def tree_of(world: World, told: Told, job_id: str, runs: int = 1) -> Tree:
    """The job's trace, when so many runs were told."""
    trace_id = (await world.job(job_id)).trace_id

    async def look() -> Tree | None:
        tree = told.tree(trace_id)
        return tree if len(tree.named("run support-triage")) == runs else None

    return await eventually(look, f"{runs} runs in {told.tree(trace_id).names()}", world.between)


def attempts(tree: Tree, run: Span) -> list[tuple[object, ...]]:
    """(step, attempt, error) of a run's attempts."""
    children = sorted((one for one in tree.spans if one.parent_id == run.span_id), key=lambda one: one.began)
    return [(one.attributes["agentjobs.step"], one.attributes["agentjobs.attempt"], one.error) for one in children]


async def test_a_job_is_one_tree_from_its_start_to_its_end(traced_world: World, told: Told) -> None:
    async with traced_world.running():
        job_id = await traced_world.submit()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    start, run = tree.one("outbox start_job"), tree.one("run support-triage")
    assert (start.parent_id, run.parent_id) == ("", start.span_id)
    assert attempts(tree, run) == [
        ("plan", 1, None),
        ("step-1.model", 1, None),
        ("step-1.create_ticket", 1, None),
        ("step-2.model", 1, None),
        ("answer", 1, None),
        ("outcome", 1, None),
    ]
    assert tree.under(tree.one("attempt plan")) == ["chat scripted"]
    assert tree.under(tree.one("attempt run_tool")) == ["execute_tool create_ticket"]
    assert (tree.orphans(), tree.twice()) == ([], [])


async def test_each_span_of_a_job_has_its_ids(traced_world: World, told: Told) -> None:
    async with traced_world.running():
        job_id = await traced_world.submit()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    ids = {(one.attributes.get("agentjobs.job.id"), one.attributes.get("agentjobs.tenant")) for one in tree.spans}
    assert ids == {(job_id, traced_world.tenant)}
    run = tree.one("run support-triage")
    assert run.attributes["agentjobs.job.state"] == "succeeded"
    assert run.began <= min(one.began for one in tree.spans if one.parent_id == run.span_id)
    assert run.ended >= max(one.began for one in tree.spans if one.parent_id == run.span_id)


async def test_a_model_call_has_the_names_of_the_conventions(traced_world: World, told: Told) -> None:
    async with traced_world.running():
        job_id = await traced_world.submit()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    calls = tree.named("chat scripted")
    named = {name: value for name, value in calls[0].attributes.items() if name.startswith("gen_ai.")}
    assert len(calls) == 4
    assert named == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.agent.name": "support-triage",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }


async def test_a_failed_attempt_and_its_call_say_why_by_a_code(traced_world: World, told: Told) -> None:
    provider = ScriptedProvider(errors=(IN_TROUBLE,))

    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    first, second = tree.named("attempt plan")
    assert attempts(tree, tree.one("run support-triage"))[:2] == [("plan", 1, "unavailable"), ("plan", 2, None)]
    assert (first.is_error, second.is_error) == (True, False)
    call = tree.named("chat scripted")[0]
    assert (call.parent_id, call.error, call.is_error) == (first.span_id, "unavailable", True)
    assert "canary" not in str(tree)


async def test_a_redrive_is_a_new_run_that_points_at_the_one_that_died(traced_world: World, told: Told) -> None:
    provider = ScriptedProvider()
    provider.fail_at("answer", REFUSES)

    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await traced_world.until_alerted(job_id)
        provider.fail_at("answer", None)
        await traced_world.order("redrive", job_id)
        await traced_world.until(job_id, JobState.SUCCEEDED)
        tree = await tree_of(traced_world, told, job_id, runs=2)

    died, redriven = tree.named("run support-triage")
    assert (died.error, died.attributes["agentjobs.job.state"]) == ("access_denied", "dead")
    assert (redriven.error, redriven.attributes["agentjobs.generation"]) == (None, 1)
    assert redriven.links == ((died.trace_id, died.span_id, "died_run"),)
    assert redriven.parent_id == tree.one("outbox redrive_job").span_id
    assert [step for step, *_ in attempts(tree, redriven)] == ["redrive-1", "answer", "outcome"]
    assert (tree.orphans(), tree.twice()) == ([], [])


async def test_a_discard_is_a_run_of_its_own(traced_world: World, told: Told) -> None:
    provider = ScriptedProvider()
    provider.fail_at("answer", REFUSES)

    async with traced_world.running(provider):
        job_id = await traced_world.submit()
        await traced_world.until_alerted(job_id)
        await traced_world.order("discard", job_id)
        await traced_world.until(job_id, JobState.DISCARDED)
        tree = await tree_of(traced_world, told, job_id, runs=2)

    discard = tree.named("run support-triage")[1]
    assert tree.parent(discard).name == "outbox discard_job"
    assert [step for step, *_ in attempts(tree, discard)] == ["effects", "undo.step-1.create_ticket", "outcome"]
    assert tree.under(tree.one("attempt undo_tool")) == ["undo_tool create_ticket"]
    assert (tree.orphans(), tree.twice()) == ([], [])


async def test_a_replay_makes_no_span_twice(traced_world: World, told: Told) -> None:
    traced_world.cached_workflows = 0

    async with traced_world.running():
        job_id = await traced_world.submit()
        await traced_world.until(job_id)
        tree = await tree_of(traced_world, told, job_id)

    assert len(attempts(tree, tree.one("run support-triage"))) == 6
    assert (tree.orphans(), tree.twice()) == ([], [])


async def test_a_job_that_was_cancelled_before_it_could_begin_has_its_run_all_the_same(
    traced_world: World, told: Told
) -> None:
    job_id = await traced_world.submit()
    await traced_world.relay().start_once()
    await traced_world.cancel(job_id)

    async with traced_world.running():
        tree = await tree_of(traced_world, told, job_id)

    run = tree.one("run support-triage")
    assert run.attributes["agentjobs.job.state"] == "cancelled"
    assert attempts(tree, run) == [("plan", 1, "job_over")]
    assert tree.orphans() == []


async def test_of_a_job_whose_caller_does_not_sample_nothing_is_told(traced_world: World, told: Told) -> None:
    job_id = await traced_world.submit()
    await traced_world.ledger.database.pool.execute(
        "UPDATE jobs SET trace_parent = '00f067aa0ba902b7', trace_sampled = false WHERE id = $1", job_id
    )

    async with traced_world.running():
        await traced_world.until(job_id, JobState.SUCCEEDED)
        await traced_world.workflow(job_id).result()

    assert told.spans == []
