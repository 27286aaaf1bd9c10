"""A wish to cancel: at once where nothing has begun, recorded and passed on where something has."""

import asyncio

import pytest

from agentjobs.domain.states import FINAL, LIVE, JobState
from agentjobs.ledger.effects import NotLive
from tests.ledger.scene import Scene


async def test_a_pending_job_is_cancelled_at_once_and_nobody_need_be_told(scene: Scene) -> None:
    job = await scene.accept()

    state = await _cancel(scene, job.id)

    now = await scene.job(job.id)
    assert (state, now.state) == (JobState.CANCELLED, JobState.CANCELLED)
    assert now.finalized_at is not None
    assert await scene.events(job.id) == ["accepted", "cancelled"]
    assert await scene.topics() == ["start_job"]


async def test_nothing_begins_of_a_job_cancelled_before_its_start(scene: Scene) -> None:
    job = await scene.accept()
    await _cancel(scene, job.id)

    with pytest.raises(NotLive):
        await scene.begin(job.id)


@pytest.mark.parametrize("state", sorted(LIVE - {JobState.PENDING}))
async def test_of_a_job_under_way_the_wish_is_recorded_and_passed_on(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    told = await _cancel(scene, job.id)

    now = await scene.job(job.id)
    assert (told, now.state) == (state, state)
    assert now.cancel_requested_at is not None
    assert await scene.events(job.id) == ["accepted", "cancel_requested"]
    assert await scene.topics() == ["start_job", "cancel_job"]


async def test_who_asked_is_in_the_audit_log(scene: Scene) -> None:
    job_id = await scene.running()

    await _cancel(scene, job_id, actor="rita")

    assert await scene.rows("SELECT tenant, actor, action, target FROM audit_log") == [
        {"tenant": "acme", "actor": "rita", "action": "cancel", "target": job_id}
    ]


async def test_a_wish_that_is_repeated_is_recorded_once(scene: Scene) -> None:
    job_id = await scene.running()

    states = await asyncio.gather(*(_cancel(scene, job_id) for _ in range(20)))

    assert set(states) == {JobState.RUNNING}
    assert (await scene.topics()).count("cancel_job") == 1
    assert (await scene.events(job_id)).count("cancel_requested") == await scene.count("audit_log") == 1


async def test_a_cancel_and_a_first_step_at_the_same_moment_agree(scene: Scene) -> None:
    jobs = [await scene.accept() for _ in range(10)]

    await asyncio.gather(
        *(scene.begin(job.id) for job in jobs), *(_cancel(scene, job.id) for job in jobs), return_exceptions=True
    )

    for job in jobs:
        now, begun = await scene.job(job.id), await scene.ledger.jobs.effects(job.id)
        assert now.state is (JobState.RUNNING if begun else JobState.CANCELLED)


@pytest.mark.parametrize("state", sorted(FINAL | {JobState.DEAD}))
async def test_a_job_that_is_over_or_dead_stays_as_it_is(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    assert await _cancel(scene, job.id) is state
    assert (await scene.job(job.id)).cancel_requested_at is None
    assert await scene.topics() == ["start_job"]


@pytest.mark.parametrize(("tenant", "user"), [("other", None), ("other", "ann"), ("acme", "bob")])
async def test_a_job_that_the_caller_has_not_cannot_be_cancelled(
    scene: Scene, tenant: str, user: str | None
) -> None:
    job_id = await scene.running(user="ann")

    state = await scene.ledger.jobs.request_cancel(tenant, job_id, user=user, actor="mallory")

    assert state is None
    assert (await scene.job(job_id)).cancel_requested_at is None
    assert await scene.count("audit_log") == 0


async def _cancel(scene: Scene, job_id: str, actor: str = "ann") -> JobState | None:
    return await scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor=actor)
