"""Death, redrive and end of a job: each once, whole, and harmless when it is told again."""

import asyncio
from datetime import timedelta

import pytest

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import FINAL, LIVE, TRANSITIONS, JobState
from tests.ledger.scene import CREATE_TICKET, RESERVE_TEN, Scene

RECEIPT = {"id": "T-1"}


async def test_a_death_is_state_letter_event_and_word_to_the_desk_together(scene: Scene) -> None:
    job_id = await scene.running()

    state = await scene.bury(job_id, reason=Category.CONTENT_REFUSED)

    job, letter = await scene.job(job_id), await scene.letter(job_id)
    assert (state, job.state, job.generation) == (JobState.DEAD, JobState.DEAD, 1)
    assert job.failure is not None
    assert (letter.reason, letter.message, letter.step) == ("content_refused", job.failure.message, CREATE_TICKET)
    assert (letter.generation, letter.state, letter.worker, letter.origin) == (1, "open", "w1", "test")
    assert (await scene.events(job_id))[-1] == "died"
    assert await scene.topics() == ["start_job", "job_died"]


async def test_a_death_that_is_told_twice_happens_once(scene: Scene) -> None:
    job_id = await scene.running()

    states = [await scene.bury(job_id, generation=0) for _ in range(3)]

    assert states == [JobState.DEAD] * 3
    assert (await scene.job(job_id)).generation == (await scene.letter(job_id)).generation == 1
    assert (await scene.events(job_id)).count("died") == (await scene.topics()).count("job_died") == 1


async def test_a_death_that_is_told_at_the_same_moment_happens_once(scene: Scene) -> None:
    job_id = await scene.running()

    async with scene.held(job_id):
        burying = [asyncio.create_task(scene.bury(job_id, generation=0)) for _ in range(3)]
        await scene.until_under_way(burying)

    assert await asyncio.gather(*burying) == [JobState.DEAD] * 3
    assert (await scene.job(job_id)).generation == 1
    assert (await scene.topics()).count("job_died") == 1


async def test_a_second_death_reopens_the_same_letter_for_a_new_review(scene: Scene) -> None:
    job_id = await scene.dead()
    first = await scene.letter(job_id)
    await scene.ledger.dead_letters.mark_alerted(job_id, 1)
    await _redrive(scene, job_id)

    await scene.bury(job_id, generation=1, reason=Category.BUG)

    second = await scene.letter(job_id)
    assert (second.id, second.generation, second.state, second.reason) == (first.id, 2, "open", "bug")
    assert (second.alerted_at, second.resolved_at, second.resolved_by, second.note) == (None, None, None, None)
    assert second.review_id != first.review_id
    assert (await scene.topics()).count("job_died") == 2


async def test_an_old_death_that_is_told_late_does_not_kill_the_redriven_job(scene: Scene) -> None:
    job_id = await scene.dead()
    await _redrive(scene, job_id)

    state = await scene.bury(job_id, generation=0)

    assert state is JobState.RUNNING
    assert (await scene.letter(job_id)).state == "redriven"


async def test_a_dead_job_can_die_again_of_a_failed_compensation(scene: Scene) -> None:
    job_id = await scene.dead()

    await scene.bury(job_id, generation=1, reason=Category.COMPENSATION_FAILED)

    letter = await scene.letter(job_id)
    assert (letter.generation, letter.reason) == (2, "compensation_failed")


async def test_a_letter_says_what_is_done_outside_and_what_is_in_doubt(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.done(job_id, CREATE_TICKET, RECEIPT)
    await scene.begin(job_id, "step-2.pay", effect_class=EffectClass.UNSAFE, name="pay")
    await scene.begin(job_id, "step-3.create_ticket")  # transactional: rolled back, so not in doubt
    await scene.begin(job_id, "step-4.model", effect_class=EffectClass.READ_ONLY)

    await scene.bury(job_id)

    letter = await scene.letter(job_id)
    done = {"step": CREATE_TICKET, "name": "create_ticket", "key": keys.step_key(job_id, CREATE_TICKET)}
    assert letter.effects_done == [{**done, "receipt": RECEIPT}]
    assert [effect["step"] for effect in letter.effects_in_doubt] == ["step-2.pay"]
    assert letter.attempts == 5


async def test_a_death_closes_the_attempts_that_never_reported_back(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.begin(job_id)

    await scene.bury(job_id)

    assert await scene.outcomes(job_id) == [("succeeded", None), ("crashed", None)]


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_job_that_is_over_does_not_die(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    assert await scene.bury(job.id) is state
    assert await scene.count("dead_letters") == 0
    assert await scene.topics() == ["start_job"]


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_job_can_die_in_every_live_state(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    assert await scene.bury(job.id) is JobState.DEAD


@pytest.mark.parametrize("after", sorted(FINAL))
@pytest.mark.parametrize("before", sorted(JobState))
async def test_a_job_ends_only_by_the_table(scene: Scene, before: JobState, after: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, before)

    state = await scene.ledger.outcomes.finish(job.id, after)

    expected = after if after in TRANSITIONS[before] else before
    assert state is (await scene.job(job.id)).state is expected


async def test_an_end_is_recorded_once_and_the_first_one_holds(scene: Scene) -> None:
    job_id = await scene.running()
    finish = scene.ledger.outcomes.finish

    async with scene.held(job_id):
        finishing = [asyncio.create_task(finish(job_id, JobState.SUCCEEDED)) for _ in range(3)]
        await scene.until_under_way(finishing)
    states = await asyncio.gather(*finishing)
    late = await finish(job_id, JobState.CANCELLED)

    assert [*states, late] == [JobState.SUCCEEDED] * 4
    assert (await scene.events(job_id)).count("succeeded") == 1


async def test_the_result_is_made_of_the_receipts(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.done(job_id, "step-1.search_tickets", {"tickets": []}, effect_class=EffectClass.READ_ONLY)
    await scene.done(job_id, "step-2.create_ticket", RECEIPT)
    await scene.done(job_id, keys.ANSWER, {"text": "Thank you."}, kind=EffectKind.MODEL)

    await scene.ledger.outcomes.finish(job_id, JobState.SUCCEEDED)

    job = await scene.job(job_id)
    assert job.result == {
        "answer": "Thank you.",
        "plan": {"text": "a plan"},
        "effects": [
            {
                **{"step": "step-2.create_ticket", "tool": "create_ticket", "state": "completed"},
                **{"receipt": RECEIPT, "outcome": "done", "because": None},
            }
        ],
    }
    assert (job.failure, job.next_attempt_at) == (None, None)
    assert job.finalized_at is not None


async def test_an_end_closes_the_attempts_that_never_reported_back(scene: Scene) -> None:
    job_id = await scene.running()
    late = await scene.begin_attempt(job_id, reserve=RESERVE_TEN)

    await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)
    await scene.fail(late, release=False)

    job = await scene.job(job_id)
    assert (job.state, job.failure) == (JobState.CANCELLED, None)
    assert (await scene.outcomes(job_id))[-1] == ("abandoned", None)


async def test_a_discarded_jobs_letter_is_closed_with_it(scene: Scene) -> None:
    job_id = await scene.dead()
    await scene.ledger.dead_letters.request("discard", "acme", job_id, actor="rita", note="no use", payload={})

    await scene.ledger.outcomes.finish(job_id, JobState.DISCARDED)

    letter = await scene.letter(job_id)
    assert (letter.state, letter.resolved_by, letter.note) == ("discarded", "rita", "no use")
    assert letter.resolved_at is not None


async def test_a_redrive_gives_the_job_a_fresh_deadline_of_the_same_length(scene: Scene) -> None:
    job_id = await scene.dead(deadline_seconds=600)
    await scene.execute("UPDATE jobs SET deadline_at = now() - interval '1 day'")

    state, deadline_at = await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="2")

    job, letter = await scene.job(job_id), await scene.letter(job_id)
    assert (state, job.state, job.policy_version, job.failure) == (JobState.RUNNING, JobState.RUNNING, "2", None)
    assert deadline_at == job.deadline_at == job.updated_at + timedelta(seconds=600)
    assert (letter.state, letter.resolved_at is not None) == ("redriven", True)


async def test_a_redrive_that_is_told_twice_takes_effect_once(scene: Scene) -> None:
    job_id = await scene.dead()

    first = await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    second = await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")

    assert first == second
    assert (await scene.events(job_id)).count("redriven") == 1


async def test_a_redrive_that_is_told_at_the_same_moment_takes_effect_once(scene: Scene) -> None:
    job_id = await scene.dead()
    resume = scene.ledger.outcomes.resume

    async with scene.held(job_id):
        resuming = [asyncio.create_task(resume(job_id, generation=1, policy_version="1")) for _ in range(3)]
        await scene.until_under_way(resuming)

    answers = await asyncio.gather(*resuming)
    assert answers == [(JobState.RUNNING, (await scene.job(job_id)).deadline_at)] * 3


@pytest.mark.parametrize(("again", "in_doubt"), [(False, True), (True, False)])
async def test_only_a_persons_word_lets_an_effect_in_doubt_be_had_again(
    scene: Scene, again: bool, in_doubt: bool
) -> None:
    job_id = await scene.running()
    unsafe = {"effect_class": EffectClass.UNSAFE, "name": "pay"}
    first = await scene.begin(job_id, "step-1.pay", **unsafe)
    await scene.bury(job_id)

    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1", again=again)
    second = await scene.begin(job_id, "step-1.pay", **unsafe)

    assert second.in_doubt == in_doubt
    # Else the destination would take it for a repetition of the first.
    assert (second.destination_key != first.destination_key) == again


@pytest.mark.parametrize("generation", [0, 2])
async def test_a_redrive_of_another_generation_changes_nothing(scene: Scene, generation: int) -> None:
    job_id = await scene.dead()

    state, _ = await scene.ledger.outcomes.resume(job_id, generation=generation, policy_version="1")

    assert state is (await scene.job(job_id)).state is JobState.DEAD
    assert (await scene.letter(job_id)).state == "open"


async def _redrive(scene: Scene, job_id: str) -> None:
    await scene.ledger.dead_letters.request("redrive", "acme", job_id, actor="rita", note="mended", payload={})
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
