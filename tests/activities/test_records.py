"""What the ledger is told of a job's course may be told twice."""

from activities.inputs import Death, Finished, Redrive
from activities.records import Records
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from tests.activities.stage import FIRST, Stage, reference, told
from tests.world import NoFence

DIED_OF = failure(Category.CONTENT_REFUSED, "no", "plan")


def records(ledger: Ledger, failpoints: str = "") -> Records:
    """The record activities of a worker."""
    return Records(ledger, Failpoints.parse(failpoints), NoFence())


async def test_an_end_that_is_recorded_again_after_a_crash_is_one(stage: Stage) -> None:
    job_id = await stage.scene.running()
    finished = Finished(**reference(job_id), state=JobState.SUCCEEDED)
    crashed = records(stage.scene.ledger, "outcome.after_record=raise").record_outcome
    first = await told(FIRST.environment("outcome").run(crashed, finished))

    again = await FIRST.environment("outcome").run(records(stage.scene.ledger).record_outcome, finished)

    assert (first, again.state) == (("unavailable", True), JobState.SUCCEEDED)
    assert (await stage.scene.events(job_id)).count("succeeded") == 1


async def test_a_death_that_is_recorded_again_after_a_crash_is_one(stage: Stage) -> None:
    job_id = await stage.scene.running()
    death = Death(**reference(job_id), generation=0, failure=DIED_OF)
    crashed = records(stage.scene.ledger, "outcome.after_record=raise").record_death
    first = await told(FIRST.environment("death-1").run(crashed, death))

    again = await FIRST.environment("death-1").run(records(stage.scene.ledger).record_death, death)

    assert (first, again.state) == (("unavailable", True), JobState.DEAD)
    assert (await stage.scene.letter(job_id)).generation == 1


async def test_a_record_that_fails_before_it_is_made_leaves_nothing(stage: Stage) -> None:
    job_id = await stage.scene.running()
    death = Death(**reference(job_id), generation=0, failure=DIED_OF)
    failing = records(stage.scene.ledger, "outcome.before_record=raise").record_death

    await told(FIRST.environment("death-1").run(failing, death))

    assert (await stage.scene.job(job_id)).state is JobState.RUNNING
    assert await stage.scene.count("dead_letters") == 0


async def test_a_redrive_that_is_recorded_tells_the_new_deadline(stage: Stage) -> None:
    job_id = await stage.scene.dead()
    redrive = Redrive(**reference(job_id), generation=1)

    resumed = await FIRST.environment("redrive-1").run(records(stage.scene.ledger).record_redrive, redrive)

    job = await stage.scene.job(job_id)
    assert (resumed.state, resumed.deadline_at) == (JobState.RUNNING, job.deadline_at)
