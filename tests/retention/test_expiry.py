"""What expires, when, and what never does."""

import asyncio

import pytest
from pydantic import ValidationError

from agentjobs.domain import keys
from agentjobs.domain.failures import Category
from agentjobs.domain.retention import RetentionPolicy
from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger import retention
from tests.ledger.scene import MODEL_CALL, Scene, submission
from tests.retention.planting import CANARY, discarded, ended_days_ago, places_of, planted, succeeded

POLICY = RetentionPolicy(content_days=30, jobs_days=90)
PLACES = {
    *(
        "jobs.input",
        "jobs.failure",
        "effects.result",
        "effects.response_id",
        "attempts.message",
        "job_events.data",
    ),
    *("dead_letters.message", "dead_letters.note", "dead_letters.effects_done", "deaths.note"),
    *("input_changes.old_input", "input_changes.note", "approvals.note", "approvals.fingerprint"),
    *("tickets.subject", "tickets.body", "tickets.category", "tickets.search", "audit_log.note"),
}
OF_A_TICKET = {"tickets.subject", "tickets.body", "tickets.category", "tickets.search"}


async def without_workflow(scene: Scene, job_id: str) -> None:
    await scene.ledger.retention.workflows_are_gone([job_id])


async def test_content_goes_when_its_age_has_come_and_the_row_stays(scene: Scene) -> None:
    job_id = await planted(scene)
    while_dead = await places_of(scene, CANARY)
    await discarded(scene, job_id)
    assert while_dead | await places_of(scene, CANARY) >= PLACES  # so the look sees what is there
    await ended_days_ago(scene, [job_id], 29.9)
    early = await scene.ledger.retention.sweep(POLICY)
    await ended_days_ago(scene, [job_id], 30.1)

    removed = await scene.ledger.retention.sweep(POLICY)

    assert (early, removed) == (0, 1)
    assert await places_of(scene, CANARY) == OF_A_TICKET | {"audit_log.note"}
    job = await scene.job(job_id)
    assert job.state is JobState.DISCARDED
    assert job.content_removed_at is not None
    assert job.erased_at is None
    assert [attempt.outcome for attempt in await scene.ledger.jobs.attempts(job_id)].count("failed") == 1
    assert len(await scene.events(job_id)) == await scene.ledger.database.pool.fetchval(
        "SELECT event_seq FROM jobs WHERE id = $1", job_id
    )


async def test_content_is_removed_once(scene: Scene) -> None:
    job_id = await succeeded(scene)
    await ended_days_ago(scene, [job_id], 31)

    removed = [await scene.ledger.retention.sweep(POLICY) for _ in range(2)]

    assert removed == [1, 0]
    assert (await scene.job(job_id)).result == {"answer": None, "plan": None, "effects": []}


async def test_live_and_dead_jobs_keep_all_however_old_they_are(scene: Scene) -> None:
    kept = [(await scene.accept(text=f"{CANARY} {state}")).id for state in LIVE]
    for job_id, state in zip(kept, LIVE, strict=True):
        await scene.move(job_id, state)
    dead = await planted(scene)
    await scene.execute("UPDATE jobs SET created_at = now() - interval '5 years', updated_at = created_at")
    before = await places_of(scene, CANARY)

    removed = await scene.ledger.retention.sweep(RetentionPolicy(content_days=1, jobs_days=1))

    assert removed == 0
    assert await places_of(scene, CANARY) == before
    assert await scene.count("jobs") == len(kept) + 1
    assert (await scene.letter(dead)).state == "open"


async def test_a_job_that_was_redriven_keeps_its_receipts_until_it_has_ended_anew(scene: Scene) -> None:
    job_id = await planted(scene)
    await scene.ledger.dead_letters.request("redrive", scene.tenant, job_id, actor="rita", note="n", payload={})
    await scene.ledger.outcomes.resume(job_id, generation=2, policy_version="1")

    removed = await scene.ledger.retention.sweep(RetentionPolicy(content_days=1, jobs_days=1))
    begun = await scene.begin(job_id, worker="w2")

    assert removed == 0
    assert begun.receipt is not None  # the ticket is found, not made again
    assert begun.receipt["url"] == f"{CANARY} url"


async def test_the_row_goes_with_all_that_refers_to_it_and_its_ticket_stays(scene: Scene) -> None:
    job_id = await planted(scene, key="k1")
    await discarded(scene, job_id)
    other = await succeeded(scene, "another")
    await ended_days_ago(scene, [job_id], 91)
    await scene.ledger.retention.sweep(POLICY)
    await without_workflow(scene, job_id)

    removed = await scene.ledger.retention.sweep(POLICY)

    assert removed == 1
    assert {row["id"] for row in await scene.rows("SELECT id FROM jobs")} == {other}
    counts = {
        table: await scene.count(table)
        for table in ("idempotency_keys", "dead_letters", "deaths", "input_changes", "approvals", "alert_letters")
    }
    assert set(counts.values()) == {0}, counts
    assert await scene.rows("SELECT subject, submitted_by FROM tickets") == [
        {"subject": f"{CANARY} subject", "submitted_by": "ann"}
    ]
    assert [row["action"] for row in await scene.rows("SELECT action FROM audit_log ORDER BY id")][-1] == "discard"


async def test_the_row_waits_for_its_workflow_to_be_gone(scene: Scene) -> None:
    job_id = await succeeded(scene)
    await ended_days_ago(scene, [job_id], 365)
    await scene.ledger.retention.sweep(POLICY)

    still = await scene.ledger.retention.sweep(POLICY)
    await without_workflow(scene, job_id)
    then = await scene.ledger.retention.sweep(POLICY)

    assert (still, then) == (0, 1)
    assert await scene.count("jobs") == 0


@pytest.mark.parametrize("days", [1.1, 89.0])
async def test_a_key_holds_as_long_as_its_job(scene: Scene, days: float) -> None:
    job_id = await succeeded(scene, key="k1")
    await ended_days_ago(scene, [job_id], days)
    policy = RetentionPolicy(content_days=1, jobs_days=90)
    await scene.ledger.retention.sweep(policy)
    await without_workflow(scene, job_id)
    await scene.ledger.retention.sweep(policy)

    again = await scene.accept(text=f"{CANARY} input", key="k1")

    assert again.id == job_id
    assert await scene.count("jobs") == 1


async def test_a_key_is_free_again_when_its_job_is_gone(scene: Scene) -> None:
    job_id = await succeeded(scene, key="k1")
    await ended_days_ago(scene, [job_id], 91)
    await scene.ledger.retention.sweep(POLICY)
    await without_workflow(scene, job_id)
    await scene.ledger.retention.sweep(POLICY)

    again = await scene.accept(text=f"{CANARY} input", key="k1")

    assert again.id != job_id
    assert again.state is JobState.PENDING


async def test_a_key_that_expires_while_its_request_is_repeated_makes_one_job(scene: Scene) -> None:
    job_id = await succeeded(scene, key="k1")
    await ended_days_ago(scene, [job_id], 91)
    await scene.ledger.retention.sweep(POLICY)
    await without_workflow(scene, job_id)
    twins = [submission(scene.tenant, text=f"{CANARY} input", key="k1") for _ in range(8)]

    sweep = asyncio.create_task(scene.ledger.retention.sweep(POLICY))
    jobs = await asyncio.gather(*(scene.ledger.jobs.accept(twin) for twin in twins))
    await sweep

    new = {job.id for job in jobs} - {job_id}
    assert len(new) <= 1
    assert {row["id"] for row in await scene.rows("SELECT id FROM jobs")} == new


async def test_a_row_that_something_waits_for_stays(scene: Scene) -> None:
    queued, bulk = await succeeded(scene, "one"), await planted(scene, "other")
    await scene.execute(
        "INSERT INTO redrives (id, tenant, created_by, note, filter, policy, again, canary, share, "
        "rate_per_second, failure_limit, verdict_seconds, fingerprint, state, letters, needs_approval) VALUES "
        "('r1', 'acme', 'rita', 'n', '{}', 'original', false, 1, 0.1, 1, 0.2, 60, 'f', 'paused', 1, false)"
    )
    await scene.execute(
        "INSERT INTO redrive_items (redrive_id, job_id, generation, place) VALUES ('r1', $1, 2, 1)", bulk
    )
    await discarded(scene, bulk)
    await scene.execute("INSERT INTO outbox (topic, job_id, tenant) VALUES ('cancel_job', $1, 'acme')", queued)
    await ended_days_ago(scene, [queued, bulk], 365)
    await scene.ledger.retention.sweep(POLICY)
    for job_id in (queued, bulk):
        await without_workflow(scene, job_id)

    held = await scene.ledger.retention.sweep(POLICY)
    await scene.execute("DELETE FROM outbox")
    await scene.execute("UPDATE redrives SET state = 'cancelled', finished_at = now() - interval '91 days'")
    free = await scene.ledger.retention.sweep(POLICY)

    assert held == 0
    assert free == 3
    assert (await scene.count("jobs"), await scene.count("redrives")) == (0, 0)


async def test_alerts_go_after_their_letters_unless_one_is_on_its_way(scene: Scene) -> None:
    await scene.execute(
        "INSERT INTO alerts (id, tenant, kind, level, reason, agent, letter_count, in_doubt_count, first_died_at, "
        "last_died_at, shown_ids, created_at) SELECT name, 'acme', 'job.died', 0, 'r', 'a', 1, 0, now(), now(), "
        "'{}', now() - interval '91 days' FROM unnest(ARRAY['over', 'waiting', 'with-letter']) AS name"
    )
    await scene.execute("INSERT INTO alert_deliveries (alert_id, sink) VALUES ('waiting', 'webhook')")
    await scene.execute(
        "INSERT INTO alert_deliveries (alert_id, sink, state) VALUES ('over', 'webhook', 'given_up')"
    )
    await scene.execute(
        "INSERT INTO alert_letters (alert_id, job_id, generation, topic, level) "
        "VALUES ('with-letter', $1, 1, 'died', 0)",
        await scene.dead(),
    )

    removed = await scene.ledger.retention.sweep(POLICY)

    assert removed == 1
    left = await scene.rows("SELECT id FROM alerts ORDER BY id")
    assert [row["id"] for row in left] == ["waiting", "with-letter"]


async def test_a_backlog_is_removed_in_batches_and_the_oldest_first(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    jobs = [await succeeded(scene, f"{CANARY} {number}") for number in range(5)]
    for age, job_id in enumerate(jobs):
        await ended_days_ago(scene, [job_id], 40 + age)

    removed = [await scene.ledger.retention.sweep(POLICY) for _ in range(4)]

    assert removed == [2, 2, 1, 0]
    order = await scene.rows("SELECT id FROM jobs ORDER BY content_removed_at, finalized_at")
    assert [row["id"] for row in order] == jobs[::-1]


async def test_a_job_that_somebody_holds_is_passed_over(scene: Scene) -> None:
    held, other = await succeeded(scene, "held"), await succeeded(scene, "other")
    await ended_days_ago(scene, [held, other], 31)

    async with scene.held(held):
        meanwhile = await scene.ledger.retention.sweep(POLICY)
    after = await scene.ledger.retention.sweep(POLICY)

    assert (meanwhile, after) == (1, 1)


async def test_sweeps_side_by_side_remove_everything_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    jobs = [await succeeded(scene, f"{CANARY} {number}") for number in range(12)]
    await ended_days_ago(scene, jobs, 31)
    total = 0

    for _ in range(6):
        total += sum(await asyncio.gather(*(scene.ledger.retention.sweep(POLICY) for _ in range(4))))

    assert total == 12
    assert await places_of(scene, CANARY) == set()


async def test_sweeping_beside_jobs_at_work_takes_nothing_from_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    await ended_days_ago(
        scene, [await succeeded(scene, f"old {number}", key=f"o{number}") for number in range(10)], 365
    )
    at_work = True

    async def sweeping() -> None:
        while at_work:
            await scene.ledger.retention.sweep(POLICY)
            looks = await scene.ledger.retention.claim_workflow_looks(2, lease_seconds=0)
            await scene.ledger.retention.workflows_are_gone(looks)

    async def worked(number: int) -> str:
        return await planted(scene, f"{CANARY} {number}", key=f"k{number}")

    sweep = asyncio.create_task(sweeping())
    try:
        jobs = await asyncio.gather(*(worked(number) for number in range(10)))
    finally:
        at_work = False
        await sweep
    repeated = [await scene.accept(text=f"{CANARY} {n} input", key=f"k{n}") for n in range(10)]

    assert [job.id for job in repeated] == jobs
    for job_id in jobs:
        receipt = (await scene.effect(job_id)).result
        assert receipt is not None
        assert CANARY in receipt["url"]


async def test_a_late_result_finds_no_place_any_more(scene: Scene) -> None:
    job_id = await scene.running()
    attempt_id = await scene.begin_attempt(job_id, keys.ANSWER, **MODEL_CALL)
    in_doubt = keys.tool_step(1, "page_somebody")
    await scene.begin(job_id, in_doubt, effect_class="reconcilable", name="page_somebody")
    await scene.ledger.outcomes.finish(job_id, JobState.CANCELLED)
    await ended_days_ago(scene, [job_id], 31)
    await scene.ledger.retention.sweep(POLICY)

    intent = scene.intent(job_id, keys.ANSWER, **MODEL_CALL)
    completed = await scene.ledger.effects.complete(intent, attempt_id, {"text": CANARY})
    await scene.ledger.effects.adopt(keys.step_key(job_id, in_doubt), {"id": CANARY})
    await scene.ledger.effects.write_text(intent, attempt_id, CANARY)

    assert completed is False
    assert await places_of(scene, CANARY) == set()


async def test_the_report_of_dead_letters_still_counts_what_has_lost_its_content(scene: Scene) -> None:
    job_id = await planted(scene)
    await discarded(scene, job_id)
    before = (await scene.ledger.dead_letters.report(scene.tenant)).outcomes
    await ended_days_ago(scene, [job_id], 31)

    await scene.ledger.retention.sweep(POLICY)

    assert (await scene.ledger.dead_letters.report(scene.tenant)).outcomes == before
    assert before.discarded == 1
    assert [death.reason for death in await scene.ledger.dead_letters.deaths(scene.tenant, job_id)] == [
        Category.ACCESS_DENIED
    ] * 2


@pytest.mark.parametrize("days", [{"content_days": 0}, {"jobs_days": 0}, {"content_days": 31, "jobs_days": 30}])
def test_a_policy_keeps_a_day_at_least_and_rows_no_shorter_than_content(days: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        RetentionPolicy(**days)
