"""Workflows that were ended by force: their jobs are dead, alerted, and can be brought back."""

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectState
from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.domain.states import JobState
from agentjobs.outbox.lost_words import LostWords
from agentjobs.outbox.reconciler import Reconciler
from agentjobs.outbox.wait_notices import WaitNotices
from agentjobs.temporal import JOB_STATE
from tests.fakes import ScriptedProvider
from tests.world import World, eventually


def reconciler_of(world: World) -> Reconciler:
    """The reconciler of this world's task queue."""
    return Reconciler(world.ledger, world.client, world.tenant)


async def terminated_in_its_answer(world: World, provider: ScriptedProvider) -> str:
    """A job that has its ticket, and whose workflow an operator terminated while the answer was written."""
    provider.hold_at("answer")
    job_id = await world.submit()
    await provider.reached("answer")
    await world.workflow(job_id).terminate()
    provider.release()
    await eventually(reconciler_of(world).run_once, "the termination to be found")
    return job_id


async def test_a_terminated_job_is_dead_and_somebody_is_told(world: World) -> None:
    provider = ScriptedProvider()
    async with world.running(provider):
        job_id = await terminated_in_its_answer(world, provider)
        letter = await world.until_alerted(job_id)

    assert (letter.reason, letter.step) == ("terminated", "answer")
    assert [effect["name"] for effect in letter.effects_done] == ["create_ticket"]


async def test_a_job_that_is_terminated_while_its_wait_is_shown_is_dead(world: World) -> None:
    provider = ScriptedProvider()
    provider.fail_at("answer", RetryableError(Category.UNAVAILABLE, "away", retry_after_seconds=600))
    async with world.running(provider):
        job_id = await world.submit()
        await world.until(job_id, JobState.RETRY_WAIT)
        assert await WaitNotices(world.ledger, world.client).run_once() == 1

        async def shown() -> bool:
            description = await world.workflow(job_id).describe()
            return description.typed_search_attributes.get(JOB_STATE) == "retry_wait"

        await eventually(shown, "the wait to be shown")
        await world.workflow(job_id).terminate()
        await eventually(reconciler_of(world).run_once, "the termination to be found")

    assert (await world.job(job_id)).state is JobState.DEAD


async def test_a_terminated_job_is_redriven_without_a_second_ticket(world: World) -> None:
    provider = ScriptedProvider()
    async with world.running(provider):
        job_id = await terminated_in_its_answer(world, provider)
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert job.generation == 1
    assert await world.ticket_count() == 1
    assert provider.calls.count("plan") == 1


async def test_a_terminated_job_that_is_discarded_has_its_ticket_closed(world: World) -> None:
    provider = ScriptedProvider()
    async with world.running(provider):
        job_id = await terminated_in_its_answer(world, provider)
        await world.order("discard", job_id)
        await world.until(job_id, JobState.DISCARDED)

    assert (await world.ticket_count(), await world.open_ticket_count()) == (1, 0)


async def test_what_ended_by_itself_is_left_alone(world: World) -> None:
    provider = ScriptedProvider()
    provider.fail_at("plan", PermanentError(Category.CONTENT_REFUSED, "no"))
    async with world.running(provider):
        dead = await world.submit()
        await world.until(dead, JobState.DEAD)
        provider.fail_at("plan", None)
        done = await world.submit()
        await world.until(done, JobState.SUCCEEDED)

    assert await reconciler_of(world).run_once() == 0
    assert (await world.job(dead)).generation == 1


async def test_a_word_that_was_lost_with_its_workflow_can_be_given_again(world: World) -> None:
    async with world.running():
        job_id = await world.submit(user="bob")
        await world.until_alerted(job_id)
    # No worker: the word is taken by hand, as if it had been delivered, and then the workflow is terminated.
    await world.order("redrive", job_id)
    await world.ledger.database.pool.execute("DELETE FROM outbox WHERE job_id = $1", job_id)
    await world.workflow(job_id).terminate()
    lost_words = LostWords(world.ledger, world.client, still_seconds=0)
    await eventually(lost_words.run_once, "the letter to be opened again")

    await world.grant("bob")
    async with world.running():
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.SUCCEEDED)

    assert job.generation == 1


async def test_a_redrive_keeps_the_promise_of_a_cancel_that_was_under_way(world: World) -> None:
    world.failpoints = "outcome.before_record=raise"  # the ticket is undone, and the end cannot be recorded
    provider = ScriptedProvider()
    async with world.running(provider):
        job_id = await world.submit()
        provider.hold_at("answer")
        await provider.reached("answer")
        await world.cancel(job_id)

        async def undone() -> bool:
            return any(effect.state is EffectState.UNDONE for effect in await world.ledger.jobs.effects(job_id))

        await eventually(undone, "the ticket to be closed")
        await world.workflow(job_id).terminate()
    world.failpoints = ""
    await eventually(reconciler_of(world).run_once, "the termination to be found")

    async with world.running(provider):
        await world.order("redrive", job_id)
        job = await world.until(job_id, JobState.CANCELLED, JobState.SUCCEEDED)

    assert job.state is JobState.CANCELLED
    assert (await world.ticket_count(), await world.open_ticket_count()) == (1, 0)


async def test_a_death_of_which_nobody_was_told_is_told_again(world: World) -> None:
    async with world.running():
        job_id = await world.submit(user="bob")
        await world.until_alerted(job_id)
    letters = world.ledger.dead_letters
    assert await letters.tell_again() == 0

    # As if the desk had been terminated between hearing of it and telling anybody.
    await world.client.get_workflow_handle(keys.desk_id(world.tenant)).terminate()
    await world.ledger.database.pool.execute(
        "UPDATE dead_letters SET alerted_at = NULL, died_at = died_at - interval '2 minutes' WHERE id = $1", job_id
    )
    await world.ledger.database.pool.execute("DELETE FROM alert_letters WHERE job_id = $1", job_id)
    assert (await letters.tell_again(), await letters.tell_again()) == (1, 0)

    async with world.running():
        letter = await world.until_alerted(job_id)
    assert letter.generation == 1
