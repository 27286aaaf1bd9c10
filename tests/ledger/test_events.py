"""What happened to a job, in order: counted from 1 without gaps, whoever writes at the same moment."""

import asyncio

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.events import EventType
from agentjobs.domain.states import JobState
from tests.ledger.scene import Scene


async def test_events_of_twenty_effects_at_once_have_no_gap_and_no_double(scene: Scene) -> None:
    job_id = await scene.running()

    await asyncio.gather(*(scene.done(job_id, f"step-{number}.t", {}) for number in range(20)))

    events = await scene.ledger.jobs.events(job_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.type for event in events].count("step_completed") == 21


async def test_events_of_everything_at_once_have_no_gap(scene: Scene) -> None:
    job_id = await scene.running()
    attempts = [await scene.begin_attempt(job_id, f"step-{number}.t") for number in range(5)]

    await asyncio.gather(
        *(scene.fail(attempt_id, release=False) for attempt_id in attempts),
        *(scene.done(job_id, f"step-{number}.u", {}) for number in range(5)),
        *(scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann") for _ in range(5)),
        *(scene.bury(job_id) for _ in range(5)),
        return_exceptions=True,  # what comes after the cancel or the death is refused
    )

    events = await scene.ledger.jobs.events(job_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.type for event in events].count("died") == 1


async def test_a_reader_that_follows_while_others_write_misses_nothing(scene: Scene) -> None:
    job_id = await scene.running()
    writing = asyncio.gather(*(scene.done(job_id, f"step-{number}.t", {}) for number in range(20)))
    seen: list[int] = []

    while len(seen) < 23:  # accepted, started, the plan, and twenty steps
        news = await scene.ledger.jobs.events(job_id, after=seen[-1] if seen else 0)
        seen += [event.seq for event in news]

    await writing
    assert seen == list(range(1, 24))


async def test_a_reader_goes_on_after_the_last_event_it_saw(scene: Scene) -> None:
    job_id = await scene.running()
    events = await scene.ledger.jobs.events(job_id)

    assert await scene.ledger.jobs.events(job_id, after=1) == events[1:]
    assert await scene.ledger.jobs.events(job_id, limit=1) == events[:1]
    assert await scene.ledger.jobs.events(job_id, after=events[-1].seq) == []


async def test_a_whole_life_is_told_in_the_names_of_the_contract(scene: Scene) -> None:
    job = await scene.accept()
    await scene.fail(await scene.begin_attempt(job.id), release=True)
    await scene.begin(job.id, attempt=2)
    await scene.bury(job.id)
    await scene.ledger.dead_letters.request("redrive", "acme", job.id, actor="rita", note="", payload={})
    await scene.ledger.outcomes.resume(job.id, generation=1, policy_version="1")
    await scene.done(job.id, "answer", {})
    await scene.ledger.outcomes.finish(job.id, JobState.SUCCEEDED)

    told = await scene.events(job.id)

    assert told == [
        *("accepted", "started", "retry_scheduled", "attempt_started", "died"),
        *("redrive_requested", "redriven", "step_completed", "succeeded"),
    ]
    assert set(told) <= set(EventType)


async def test_events_hold_no_content(scene: Scene) -> None:
    job = await scene.accept(text="s3cr3t request")
    await scene.done(job.id, "plan", {"text": "s3cr3t reply"})
    await scene.bury(job.id)

    events = await scene.ledger.jobs.events(job.id)

    assert len(events) == 4
    assert "s3cr3t" not in str([event.data for event in events])


async def test_nothing_is_told_of_a_job_after_its_end(scene: Scene) -> None:
    job = await scene.accept()
    reading = {"effect_class": EffectClass.READ_ONLY}
    attempt_id = await scene.begin_attempt(job.id, **reading)
    await scene.ledger.outcomes.finish(job.id, JobState.CANCELLED)

    stored = await scene.ledger.effects.complete(scene.intent(job.id, **reading), attempt_id, {"late": True})

    events = await scene.ledger.jobs.events(job.id)
    assert stored  # the reply is paid for, and kept
    assert events[-1].type == "cancelled"
    assert await scene.rows("SELECT event_seq FROM jobs") == [{"event_seq": events[-1].seq}]
