"""Erased on request: everywhere, only what has ended, and on record."""

import asyncio

import asyncpg
import pytest

from agentjobs.domain.states import LIVE, JobState
from agentjobs.ledger import erasure as erasing
from agentjobs.ledger.erasure import ErasureRecord, StillLive
from agentjobs.ledger.jobs import JobErased
from tests.ledger.scene import Scene, submission
from tests.retention.planting import (
    CALL_OUTSIDE,
    CANARY,
    discarded,
    ended_days_ago,
    finished,
    places_of,
    planted,
    succeeded,
)
from tests.retention.test_expiry import POLICY


async def erase(scene: Scene, job_id: str) -> ErasureRecord:
    erasure = await scene.ledger.erasures.of_job(scene.tenant, job_id, actor="adam")
    assert erasure is not None
    return erasure


async def completed(scene: Scene, erasure: ErasureRecord) -> bool:
    await scene.ledger.erasures.advance(erasure)
    now = await scene.ledger.erasures.read(scene.tenant, erasure.id)
    assert now is not None
    return now.completed_at is not None


async def audited(scene: Scene) -> list[tuple[str, str, str]]:
    rows = await scene.rows("SELECT actor, action, target FROM audit_log WHERE action LIKE '%eras%' ORDER BY id")
    return [(row["actor"], row["action"], row["target"]) for row in rows]


async def test_nothing_of_an_erased_job_is_left_anywhere(scene: Scene) -> None:
    job_id = await planted(scene, key="k1")
    await discarded(scene, job_id)
    fingerprints = await scene.rows("SELECT fingerprint FROM idempotency_keys")

    await erase(scene, job_id)

    assert await places_of(scene, CANARY) == set()
    assert await places_of(scene, fingerprints[0]["fingerprint"]) == set()
    job = await scene.job(job_id)
    assert job.state is JobState.DISCARDED
    assert job.erased_at is not None


async def test_what_was_done_stays_on_record_without_the_words(scene: Scene) -> None:
    job_id = await planted(scene)
    await discarded(scene, job_id)

    erasure = await erase(scene, job_id)

    effect = await scene.effect(job_id)
    assert (effect.state, effect.result) == ("completed", {})
    assert await scene.rows("SELECT subject, body, state, operation_key FROM tickets") == [
        {"subject": "(erased)", "body": "", "state": "open", "operation_key": effect.key}
    ]
    outside, total = await scene.ledger.erasures.left_outside(erasure.id)
    assert [(one.step, one.tool, one.state) for one in outside] == [(CALL_OUTSIDE, "page_somebody", "completed")]
    assert total == 1
    notes = await scene.rows("SELECT action, note FROM audit_log WHERE target = $1 AND note IS NOT NULL", job_id)
    assert {note["note"] for note in notes} == {"(erased)"}
    assert {note["action"] for note in notes} >= {"redrive", "correct_input", "discard"}


async def test_an_erasure_is_on_record_with_who_and_what(scene: Scene) -> None:
    job_id = await succeeded(scene)

    erasure = await erase(scene, job_id)
    await scene.ledger.retention.workflows_are_gone([job_id])
    done = await completed(scene, erasure)

    assert done
    assert await audited(scene) == [
        ("adam", "request_erasure", job_id),
        ("adam", "erase_job", job_id),
        ("agentjobs", "complete_erasure", job_id),
    ]


async def test_other_jobs_keep_everything(scene: Scene) -> None:
    other = await planted(scene, "Nachtigall", user="ben")
    job_id = await succeeded(scene)
    before = await places_of(scene, "Nachtigall")

    await erase(scene, job_id)

    assert await places_of(scene, "Nachtigall") == before
    assert (await scene.letter(other)).state == "open"


async def test_an_incident_that_names_an_erased_job_stays_as_it_is(scene: Scene) -> None:
    job_id = await succeeded(scene)
    await scene.execute(
        "INSERT INTO tickets (tenant, operation_key, job_id, subject, body, category, urgency, language) "
        "VALUES ('acme', 'incident/x', $1, 'A job died', 'b', 'incident', 'high', 'en')",
        job_id,
    )

    await erase(scene, job_id)

    assert (await scene.rows("SELECT subject FROM tickets")) == [{"subject": "A job died"}]


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_live_job_is_not_erased(scene: Scene, state: JobState) -> None:
    job_id = (await scene.accept(text=CANARY)).id
    await scene.move(job_id, state)

    with pytest.raises(StillLive) as refused:
        await scene.ledger.erasures.of_job(scene.tenant, job_id, actor="adam")

    assert refused.value.state is state
    assert await places_of(scene, CANARY) == {"jobs.input"}
    assert await scene.count("erasures") == 0


async def test_a_dead_job_is_discarded_and_erased_when_it_has_ended(scene: Scene) -> None:
    job_id = await planted(scene)

    erasure = await erase(scene, job_id)
    early = await completed(scene, erasure)
    letter, before = await scene.letter(job_id), await places_of(scene, CANARY)
    await finished(scene, job_id, JobState.DISCARDED)
    await scene.ledger.erasures.advance(erasure)

    assert not early
    assert (letter.state, letter.resolved_by) == ("discard_requested", "adam")
    assert "effects.result" in before  # until then its receipts are needed
    assert await places_of(scene, CANARY) == set()


async def test_a_dead_job_that_dies_of_its_discard_is_discarded_again(scene: Scene) -> None:
    job_id = await planted(scene)
    erasure = await erase(scene, job_id)
    await scene.bury(job_id, generation=2)

    await scene.ledger.erasures.advance(erasure)

    assert (await scene.letter(job_id)).state == "discard_requested"


async def test_repeating_it_while_it_is_under_way_is_the_same_order(scene: Scene) -> None:
    job_id = await planted(scene)

    first, second = await erase(scene, job_id), await erase(scene, job_id)

    assert first == second
    assert (await audited(scene)).count(("adam", "request_erasure", job_id)) == 1


async def test_an_erased_job_is_not_erased_again(scene: Scene) -> None:
    job_id = await succeeded(scene)
    await erase(scene, job_id)

    with pytest.raises(JobErased):
        await scene.ledger.erasures.of_job(scene.tenant, job_id, actor="adam")


async def test_a_job_whose_content_had_expired_loses_the_rest(scene: Scene) -> None:
    job_id = await planted(scene)
    await discarded(scene, job_id)
    await ended_days_ago(scene, [job_id], 31)
    await scene.ledger.retention.sweep(POLICY)

    await erase(scene, job_id)

    assert await places_of(scene, CANARY) == set()


async def test_another_tenants_job_is_unknown(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("globex")
    job_id = await succeeded(scene)

    erasure = await scene.ledger.erasures.of_job("globex", job_id, actor="gus")

    assert erasure is None
    assert (await scene.job(job_id)).erased_at is None


async def test_an_erased_job_is_in_no_list_and_takes_no_redrive(scene: Scene) -> None:
    job_id = await planted(scene)
    await discarded(scene, job_id)
    await erase(scene, job_id)

    listed = await scene.ledger.jobs.page(scene.tenant, user=None, state=None, agent=None, before=None, limit=10)

    assert listed == []
    assert (await scene.letter(job_id)).erased_at is not None
    assert (await scene.letter(job_id)).state == "discarded"


async def test_the_key_of_an_erased_job_makes_no_second_one_whatever_is_sent(scene: Scene) -> None:
    job_id = await succeeded(scene, key="k1")
    await erase(scene, job_id)

    for text in (f"{CANARY} input", "another text"):
        with pytest.raises(JobErased):
            await scene.accept(text=text, key="k1")

    assert await scene.count("jobs") == 1


async def test_the_mark_of_an_erasure_stays_as_long_as_a_row_would(scene: Scene) -> None:
    job_id = await succeeded(scene, key="k1")
    await erase(scene, job_id)
    await scene.ledger.retention.workflows_are_gone([job_id])
    await scene.execute("UPDATE jobs SET finalized_at = now() - interval '5 years'")

    early = await scene.ledger.retention.sweep(POLICY)
    await ended_days_ago(scene, [job_id], 91)
    late = await scene.ledger.retention.sweep(POLICY)

    assert (early, late) == (0, 1)


async def test_all_that_a_user_submitted_is_erased_when_each_has_ended(scene: Scene) -> None:
    done, dead = await succeeded(scene, f"{CANARY} done"), await planted(scene, f"{CANARY} dead")
    pending, running = (await scene.accept(text=CANARY)).id, await scene.running(text=CANARY)
    others = await planted(scene, "Nachtigall", user="ben")
    erasure = await scene.ledger.erasures.of_user(scene.tenant, "ann", actor="adam")
    later = (await scene.accept(text="Amsel")).id

    await scene.ledger.erasures.advance(erasure)
    await scene.ledger.erasures.advance(erasure)
    halfway = await scene.ledger.erasures.progress(erasure.id)
    for job_id, state in ((dead, JobState.DISCARDED), (running, JobState.CANCELLED)):
        await finished(scene, job_id, state)
    await scene.ledger.erasures.advance(erasure)
    with_workflows = await completed(scene, erasure)
    await scene.ledger.retention.workflows_are_gone([done, dead, pending, running])

    assert (halfway.jobs, halfway.erased, halfway.not_ended) == (4, 2, 2)
    assert not with_workflows
    assert await completed(scene, erasure)
    assert await places_of(scene, CANARY) == set()
    assert "jobs.input" in await places_of(scene, "Nachtigall")
    assert "jobs.input" in await places_of(scene, "Amsel")
    assert (await scene.job(pending)).state is JobState.CANCELLED
    assert (await scene.job(later)).state is JobState.PENDING
    assert (await scene.letter(others)).state == "open"
    erased = [target for actor, action, target in await audited(scene) if (actor, action) == ("adam", "erase_job")]
    assert sorted(erased) == sorted([done, dead, pending, running])


async def test_a_users_tickets_are_erased_also_when_their_jobs_are_gone(scene: Scene) -> None:
    for user in ("ann", "ben"):
        job_id = await planted(scene, f"{CANARY} {user}", user=user)
        await discarded(scene, job_id, "x")
        await ended_days_ago(scene, [job_id], 91)
    await scene.ledger.retention.sweep(POLICY)
    await scene.ledger.retention.workflows_are_gone([row["id"] for row in await scene.rows("SELECT id FROM jobs")])
    await scene.ledger.retention.sweep(POLICY)
    assert await scene.count("jobs") == 0

    erasure = await scene.ledger.erasures.of_user(scene.tenant, "ann", actor="adam")
    done = await completed(scene, erasure)

    assert done
    assert await scene.rows("SELECT subject, submitted_by FROM tickets ORDER BY id") == [
        {"subject": "(erased)", "submitted_by": None},
        {"subject": f"{CANARY} ben subject", "submitted_by": "ben"},
    ]


async def test_two_relays_erase_each_job_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "BATCH", 3)
    jobs = [await succeeded(scene, f"{CANARY} {number}") for number in range(10)]
    erasure = await scene.ledger.erasures.of_user(scene.tenant, "ann", actor="adam")

    for _ in range(4):
        await asyncio.gather(*(scene.ledger.erasures.advance(erasure) for _ in range(3)))

    erased = [target for _, action, target in await audited(scene) if action == "erase_job"]
    assert sorted(erased) == sorted(jobs)
    assert await places_of(scene, CANARY) == set()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit_log SET note = NULL",
        "UPDATE audit_log SET note = 'better'",
        "UPDATE audit_log SET note = '(erased)', actor = 'nobody'",
        "UPDATE audit_log SET note = '(erased)' WHERE target = '{other}'",
        "DELETE FROM audit_log",
    ],
)
async def test_of_the_audit_log_only_the_notes_on_erased_jobs_may_go(scene: Scene, change: str) -> None:
    erased, other = await planted(scene), await planted(scene, "Nachtigall")
    await discarded(scene, erased)
    await scene.execute("UPDATE jobs SET content_removed_at = now(), erased_at = now() WHERE id = $1", erased)

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await scene.execute(change.replace("{other}", other))


async def test_a_job_that_commits_after_the_order_is_erased_as_well(scene: Scene) -> None:
    async with scene.ledger.database.transaction() as connection:
        late = await scene.ledger.jobs.accept(submission(scene.tenant, id="late"), connection)
        order = await scene.ledger.erasures.of_user(scene.tenant, "ann", actor="adam")
        early = await completed(scene, order)

    cancelled = await completed(scene, order)
    await scene.ledger.erasures.advance(order)

    assert (early, cancelled) == (False, False)  # nobody saw it; then it was cancelled first
    assert (await scene.job(late.id)).erased_at is not None


async def test_orders_that_wait_hold_up_no_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "BATCH", 2)
    await scene.running()
    waiting = [await scene.ledger.erasures.of_user(scene.tenant, "ann", actor="adam") for _ in range(3)]
    last = await scene.ledger.erasures.of_user(scene.tenant, "nobody", actor="adam")

    seen = [one.id for _ in range(2) for one in await scene.ledger.erasures.under_way()]

    assert sorted(seen) == sorted([*(one.id for one in waiting), last.id])
