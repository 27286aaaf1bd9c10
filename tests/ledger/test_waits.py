"""Jobs that wait for their next attempt: who is told of it, how often, and what is listed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.waits import Wait
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.ledger.scene import CREATE_TICKET, Scene

FEW = 20
"""How many waits of one job are told of without a pause in between."""


@pytest.fixture
async def second(scene: Scene, postgres: EmbeddedPostgres) -> AsyncIterator[Ledger]:
    """The same ledger as another process has it open."""
    name: str = await scene.ledger.database.pool.fetchval("SELECT current_database()")
    opened = await Ledger.open(postgres.dsn(name), size=5, application_name="second")
    yield opened
    await opened.close()


async def waiting(
    scene: Scene, seconds: float = 60, category: Category = Category.UNAVAILABLE, **changes: str
) -> str:
    """A job that waits for so long; its id."""
    job = await scene.accept(**changes)
    await fail_once(scene, job.id, seconds, category)
    return job.id


async def fail_once(
    scene: Scene, job_id: str, seconds: float = 60, category: Category = Category.UNAVAILABLE, attempt: int = 1
) -> None:
    """One more attempt fails, and the job waits."""
    attempt_id = await scene.begin_attempt(job_id, attempt=attempt, run_id=f"run-{attempt}")
    await scene.fail(attempt_id, release=True, wait_seconds=seconds, category=category)


async def claimed(scene: Scene) -> list[Wait]:
    """What one process claims."""
    return await scene.ledger.waits.claim(100)


async def test_a_wait_is_told_with_what_an_owner_asks(scene: Scene) -> None:
    job_id = await waiting(scene, category=Category.RATE_LIMITED)

    waits = await claimed(scene)

    until = (await scene.job(job_id)).next_attempt_at
    assert until is not None
    assert waits == [Wait(job_id=job_id, step=CREATE_TICKET, attempt=1, category="rate_limited", until=until)]


async def test_a_wait_is_told_once(scene: Scene) -> None:
    await waiting(scene)

    assert [len(await claimed(scene)) for _ in range(3)] == [1, 0, 0]


async def test_the_next_wait_of_the_same_job_is_told_again(scene: Scene) -> None:
    job_id = await waiting(scene)
    await claimed(scene)

    await fail_once(scene, job_id, attempt=2)

    assert [(wait.job_id, wait.attempt) for wait in await claimed(scene)] == [(job_id, 2)]


async def test_of_two_that_claim_at_the_same_moment_each_tells_others(scene: Scene, second: Ledger) -> None:
    jobs = {await waiting(scene) for _ in range(40)}

    rounds = await asyncio.gather(
        *(ledger.waits.claim(5) for _ in range(10) for ledger in (scene.ledger, second)),
    )
    rest = await claimed(scene)

    told = [wait.job_id for waits in [*rounds, rest] for wait in waits]
    assert len(told) == len(set(told))
    assert set(told) == jobs
    assert all(len(waits) <= 5 for waits in rounds)


async def test_a_claim_does_not_wait_for_a_job_that_is_being_written(scene: Scene) -> None:
    busy, other = await waiting(scene), await waiting(scene)

    async with scene.held(busy):
        meanwhile = await claimed(scene)

    assert [wait.job_id for wait in meanwhile] == [other]
    assert [wait.job_id for wait in await claimed(scene)] == [busy]


@pytest.mark.parametrize(("seconds", "told"), [(4.5, 0), (20, 1)])
async def test_a_short_wait_is_not_worth_telling(scene: Scene, seconds: float, told: int) -> None:
    await waiting(scene, seconds)

    assert len(await claimed(scene)) == told


async def test_a_job_that_went_on_is_not_told(scene: Scene) -> None:
    gone_on, cancelled, dead = await waiting(scene), await waiting(scene), await waiting(scene)
    await scene.begin(gone_on, attempt=2)
    await scene.ledger.outcomes.finish(cancelled, JobState.CANCELLED)
    await scene.bury(dead)

    assert await claimed(scene) == []


async def test_after_twenty_waits_the_next_are_told_at_doubling_intervals(scene: Scene) -> None:
    job_id = await waiting(scene)
    told = [len(await claimed(scene))]
    for attempt in range(2, FEW + 2):
        await fail_once(scene, job_id, attempt=attempt)
        told.append(len(await claimed(scene)))

    later = [await told_after(scene, job_id, minutes) for minutes in (0.9, 1.1, 1.9, 2.1, 3.9, 4.1)]

    assert told == [1] * FEW + [0]
    assert later == [0, 1, 0, 1, 0, 1]


async def told_after(scene: Scene, job_id: str, minutes: float) -> int:
    """Whether one more wait is told when the last one was told so long ago."""
    await fail_once(scene, job_id, attempt=FEW + round(minutes * 10))
    await scene.execute("UPDATE jobs SET wait_shown_at = now() - make_interval(secs => $1)", minutes * 60)
    return len(await claimed(scene))


async def test_however_often_a_job_waits_the_claim_works(scene: Scene) -> None:
    job_id = await waiting(scene)
    await scene.execute("UPDATE jobs SET waits_shown = 2000000000, wait_shown_at = now() - interval '3 years'")

    assert [wait.job_id for wait in await claimed(scene)] == [job_id]


async def test_after_a_redrive_the_waits_are_told_again(scene: Scene) -> None:
    job_id = await waiting(scene)
    await scene.execute("UPDATE jobs SET waits_shown = 40, wait_shown_at = now()")
    await scene.bury(job_id)
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1")

    await fail_once(scene, job_id, attempt=2)

    assert len(await claimed(scene)) == 1


async def test_a_claim_is_not_news_of_the_job(scene: Scene) -> None:
    job_id = await waiting(scene)
    before = await scene.job(job_id), await scene.events(job_id)

    await claimed(scene)

    assert (await scene.job(job_id), await scene.events(job_id)) == before


async def test_what_waits_is_listed_by_the_moment_of_its_next_attempt(scene: Scene) -> None:
    late, overdue, soon = await waiting(scene, 600), await waiting(scene, 1), await waiting(scene, 60)
    await scene.execute("UPDATE jobs SET next_attempt_at = now() - interval '1 hour' WHERE id = $1", overdue)
    await scene.running()
    await scene.ledger.identity.create_tenant("other")
    await waiting(scene, tenant="other")

    listed = await scene.ledger.waits.waiting("acme", user=None, limit=10)

    assert [job.id for job in listed] == [overdue, soon, late]
    assert [job.id for job in await scene.ledger.waits.waiting("acme", user=None, limit=1)] == [overdue]


async def test_a_user_sees_only_what_is_theirs(scene: Scene) -> None:
    anns, _ = await waiting(scene, user="ann"), await waiting(scene, user="bob")

    listed = await scene.ledger.waits.waiting("acme", user="ann", limit=10)
    counts = await scene.ledger.waits.counts("acme", user="ann")

    assert [job.id for job in listed] == [anns]
    assert [count.count for count in counts] == [1]


async def test_what_waits_is_counted_by_its_kind_of_trouble_the_most_frequent_first(scene: Scene) -> None:
    first = await waiting(scene, 60, Category.RATE_LIMITED)
    for seconds in (90, 120):
        await waiting(scene, seconds, Category.RATE_LIMITED)
    for category in (Category.UNAVAILABLE, Category.TIMEOUT):
        await waiting(scene, category=category)
    await scene.running()

    counts = await scene.ledger.waits.counts("acme", user=None)

    assert [(one.category, one.count) for one in counts] == [
        ("rate_limited", 3),
        ("timeout", 1),
        ("unavailable", 1),
    ]
    assert counts[0].next_at == (await scene.job(first)).next_attempt_at


async def test_where_nothing_waits_nothing_is_listed(scene: Scene) -> None:
    await scene.running()

    assert await scene.ledger.waits.waiting("acme", user=None, limit=10) == []
    assert await scene.ledger.waits.counts("acme", user=None) == []
