"""Acceptance: a job is there durably with all that belongs to it, or not at all; and one key means one job."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import asyncpg
import pytest

from agentjobs.domain import keys
from agentjobs.domain.job import Budget
from agentjobs.domain.states import JobState
from agentjobs.ledger.jobs import KeyInFlight, KeyReused
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import CHANNEL
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.conftest import fresh_database
from tests.ledger.scene import MODEL_CALL, Scene, submission

TABLES = ("jobs", "idempotency_keys", "outbox", "job_events")


async def test_an_accepted_job_is_pending_with_its_first_event_and_its_outbox_row(scene: Scene) -> None:
    job = await scene.accept(priority=1)

    assert (job.state, job.generation, job.attempt) == (JobState.PENDING, 0, 0)
    assert await scene.events(job.id) == ["accepted"]
    assert await scene.rows("SELECT topic, job_id, tenant, priority FROM outbox") == [
        {"topic": "start_job", "job_id": job.id, "tenant": "acme", "priority": 1}
    ]


async def test_what_was_asked_for_is_kept(scene: Scene) -> None:
    budget = Budget(tokens=7, usd=Decimal("0.000001"))

    job = await scene.accept(text="Grüße 😡", budget=budget, deadline_seconds=60)

    stored = await scene.rows("SELECT input FROM jobs")
    assert stored == [{"input": {"text": "Grüße 😡"}}]
    assert (job.budget_tokens, job.budget_usd) == (7, Decimal("0.000001"))
    assert job.deadline_at - job.created_at == timedelta(seconds=60)


async def test_same_key_returns_the_first_job(scene: Scene) -> None:
    first = await scene.accept(key="k1")

    second = await scene.accept(key="k1")

    assert second == first
    assert [await scene.count(table) for table in TABLES] == [1, 1, 1, 1]


async def test_same_key_returns_the_first_job_as_it_was_accepted(scene: Scene) -> None:
    first = await scene.accept(key="k1", budget=Budget(tokens=5))
    await scene.done(first.id, keys.PLAN, {"text": "a plan"}, **MODEL_CALL)
    await scene.bury(first.id)
    await scene.execute("UPDATE jobs SET budget_tokens = 9, updated_at = now() + interval '1 second'")

    second = await scene.accept(key="k1", budget=Budget(tokens=5))

    assert second == first
    assert (await scene.job(first.id)).state is JobState.DEAD


async def test_a_twin_waits_no_longer_than_its_session_may(postgres: EmbeddedPostgres) -> None:
    async with fresh_database(postgres) as url:
        ledger = await Ledger.open(url, size=3, application_name="tests", lock_seconds=0.05)
        scene = await Scene.set_up(ledger)
        async with ledger.database.pool.acquire() as holder:
            transaction = holder.transaction()
            await transaction.start()
            first = await ledger.jobs.accept(submission("acme", key="k1"), holder)

            with pytest.raises(KeyInFlight):
                await scene.accept(key="k1")
            other = await scene.accept(key="k2")
            await transaction.commit()

        assert (await scene.accept(key="k1")).id == first.id != other.id
        await ledger.close()


async def test_same_key_with_another_body_is_refused_and_leaves_nothing(scene: Scene) -> None:
    first = await scene.accept(key="k1")

    with pytest.raises(KeyReused):
        await scene.accept(key="k1", text="Something else")

    assert [await scene.count(table) for table in TABLES] == [1, 1, 1, 1]
    assert (await scene.accept(key="k1")).id == first.id


async def test_without_a_key_each_request_is_a_new_job(scene: Scene) -> None:
    one, other = await scene.accept(), await scene.accept()

    assert one.id != other.id
    assert [await scene.count(table) for table in TABLES] == [2, 0, 2, 2]


async def test_fifty_at_once_with_one_key_are_one_job(scene: Scene) -> None:
    accepted = await asyncio.gather(*(scene.accept(key="k1") for _ in range(50)))

    assert len({job.id for job in accepted}) == 1
    assert [await scene.count(table) for table in TABLES] == [1, 1, 1, 1]


async def test_fifty_at_once_with_one_key_and_two_bodies_are_one_job_and_refusals(scene: Scene) -> None:
    bodies = ["one", "other"] * 25

    answers = await asyncio.gather(*(scene.accept(key="k1", text=text) for text in bodies), return_exceptions=True)

    jobs = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(jobs) == 25
    assert len({job.id for job in jobs}) == 1
    assert all(isinstance(answer, KeyReused) for answer in answers if isinstance(answer, BaseException))
    assert await scene.count("jobs") == 1


async def test_a_key_is_its_users_and_its_tenants_own(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")

    jobs = [
        await scene.accept(key="k1", user="ann"),
        await scene.accept(key="k1", user="bob"),
        await scene.accept(key="k1", user="ann", tenant="other"),
    ]

    assert len({job.id for job in jobs}) == 3
    assert await scene.count("idempotency_keys") == 3


@pytest.mark.parametrize(
    "broken",
    [{"text": "one\x00two"}, {"priority": 9}, {"deadline_seconds": 0}, {"tenant": "nobody"}, {"id": "a/b"}],
    ids=["nul", "priority", "deadline", "no such tenant", "unsafe id"],
)
async def test_a_request_the_ledger_cannot_hold_leaves_nothing(scene: Scene, broken: dict[str, object]) -> None:
    with pytest.raises(asyncpg.PostgresError):
        await scene.accept(**{"key": "k1", "fingerprint": "f" * 64, **broken})

    assert [await scene.count(table) for table in TABLES] == [0, 0, 0, 0]


async def test_a_lone_surrogate_is_refused_before_it_reaches_the_database(scene: Scene) -> None:
    with pytest.raises((ValueError, asyncpg.DataError)):
        await scene.accept(key="k1", text="\ud800", fingerprint="f" * 64)

    assert [await scene.count(table) for table in TABLES] == [0, 0, 0, 0]


async def test_a_refused_request_does_not_use_its_key_up(scene: Scene) -> None:
    with pytest.raises(asyncpg.PostgresError):
        await scene.accept(key="k1", priority=9)

    assert (await scene.accept(key="k1")).state is JobState.PENDING


async def test_acceptance_in_the_callers_transaction_goes_with_it(scene: Scene) -> None:
    class QuotaExceeded(Exception):
        """The caller's reason."""

    with pytest.raises(QuotaExceeded):
        async with scene.ledger.database.transaction() as connection:
            await scene.ledger.jobs.accept(submission(scene.tenant, key="k1"), connection)
            raise QuotaExceeded

    assert [await scene.count(table) for table in TABLES] == [0, 0, 0, 0]


async def test_the_relay_is_woken_by_an_accepted_job(scene: Scene) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with scene.ledger.database.pool.acquire() as listener:

        def hear(*words: object) -> None:
            heard.put_nowait(str(words[3]))

        await listener.add_listener(CHANNEL, hear)
        await scene.accept()
        word = await asyncio.wait_for(heard.get(), timeout=5)
        await listener.remove_listener(CHANNEL, hear)  # the session goes back into the pool as it is

    assert word == ""


async def test_keys_of_any_text_are_kept_apart(scene: Scene) -> None:
    odd = ["k", "K", "k ", "", "é", "e\u0301", "'; DROP TABLE jobs; --", "k" * 255]

    jobs = [await scene.accept(key=key, fingerprint=keys.fingerprint(key)) for key in odd]

    assert len({job.id for job in jobs}) == len(odd)


async def test_a_job_is_read_by_its_tenant_and_its_user_only(scene: Scene) -> None:
    job = await scene.accept(user="ann")
    read = scene.ledger.jobs.read

    for found in (await read("acme", job.id), await read("acme", job.id, user="ann")):
        assert found is not None
        assert found.model_dump() == job.model_dump(exclude={"quotas"})
    assert await read("acme", job.id, user="bob") is None
    assert await read("other", job.id) is None


async def test_pages_go_newest_first_without_gap_or_repetition(scene: Scene) -> None:
    accepted = [(await scene.accept(user=user)).id for user in ("ann", "bob", "ann", "ann", "ann")]
    await scene.execute("UPDATE jobs SET created_at = now()")  # the same moment for all: the id decides

    seen: list[str] = []
    before = None
    while page := await scene.ledger.jobs.page(
        scene.tenant, user="ann", state=None, agent=None, before=before, limit=2
    ):
        seen += [job.id for job in page]
        before = (page[-1].created_at, page[-1].id)

    assert seen == sorted({*accepted} - {accepted[1]}, reverse=True)
