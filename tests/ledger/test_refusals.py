"""Whether a step may begin: refusals are precise, on record where an attempt was made, and change nothing else."""

import pytest

from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import Category, KeyConflict, PermanentError
from agentjobs.domain.states import FINAL, LIVE, JobState
from agentjobs.ledger.effects import CancelRequested, NotLive
from tests.ledger.scene import CREATE_TICKET, RESERVE_TEN, Scene

RECEIPT = {"id": "T-1"}
TICKETS = "tickets:create"


async def test_the_same_key_with_other_arguments_is_a_conflict_without_content(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT, fingerprint="a" * 64)

    with pytest.raises(KeyConflict) as refused:
        await scene.begin(job.id, fingerprint="b" * 64)

    assert refused.value.category is Category.KEY_CONFLICT
    assert ("a" * 16 in str(refused.value), "b" * 16 in str(refused.value)) == (True, True)
    assert "T-1" not in str(refused.value)


async def test_a_conflict_is_an_attempt_on_record_and_changes_nothing_else(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT, fingerprint="a" * 64)
    before = await scene.rows("SELECT * FROM effects")

    with pytest.raises(KeyConflict):
        await scene.begin(job.id, fingerprint="b" * 64)

    assert await scene.rows("SELECT * FROM effects") == before
    assert await scene.outcomes(job.id) == [("succeeded", None), ("failed", "key_conflict")]


async def test_a_missing_grant_is_refused_and_on_record(scene: Scene) -> None:
    job = await scene.accept()

    with pytest.raises(PermanentError, match="no grant") as refused:
        await scene.begin(job.id, grant=TICKETS)

    assert refused.value.category is Category.ACCESS_DENIED
    assert await scene.outcomes(job.id) == [("failed", "access_denied")]
    assert await scene.count("effects") == 0


async def test_a_grant_counts_at_the_moment_of_the_effect(scene: Scene) -> None:
    job = await scene.accept()
    await scene.ledger.identity.add_grant("acme", "ann", TICKETS, granted_by="test")
    await scene.fail(await scene.begin_attempt(job.id, grant=TICKETS), release=True)
    await scene.ledger.identity.revoke_grant("acme", "ann", TICKETS)

    with pytest.raises(PermanentError, match="no grant"):
        await scene.begin(job.id, grant=TICKETS, attempt=2)


@pytest.mark.parametrize(("tenant", "user"), [("acme", "bob"), ("other", "ann")])
async def test_anothers_grant_does_not_count(scene: Scene, tenant: str, user: str) -> None:
    await scene.ledger.identity.create_tenant("other")
    await scene.ledger.identity.add_grant(tenant, user, TICKETS, granted_by="test")
    job = await scene.accept()

    with pytest.raises(PermanentError, match="no grant"):
        await scene.begin(job.id, grant=TICKETS)


async def test_no_step_begins_after_the_deadline(scene: Scene) -> None:
    job = await scene.accept()
    await scene.execute("UPDATE jobs SET deadline_at = now()")

    with pytest.raises(PermanentError) as refused:
        await scene.begin(job.id)

    assert refused.value.category is Category.DEADLINE_EXCEEDED
    assert await scene.outcomes(job.id) == [("failed", "deadline_exceeded")]


async def test_what_is_done_is_returned_even_if_it_may_no_longer_be_begun(scene: Scene) -> None:
    job = await scene.accept()
    await scene.done(job.id, CREATE_TICKET, RECEIPT)
    await scene.execute("UPDATE jobs SET deadline_at = now(), budget_tokens = 1, tokens_in = 2")

    later = await scene.begin(job.id, grant=TICKETS, reserve=RESERVE_TEN)

    assert later.receipt == RECEIPT


@pytest.mark.parametrize("state", [state for state in JobState if state not in LIVE])
async def test_no_step_begins_of_a_job_that_is_over_or_dead(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    with pytest.raises(NotLive) as refused:
        await scene.begin(job.id)

    assert refused.value.state is state
    assert await scene.count("effects") == await scene.count("attempts") == 0


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_step_begins_in_every_live_state(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    await scene.begin(job.id)

    assert (await scene.job(job.id)).state is JobState.RUNNING


async def test_no_step_begins_after_a_cancel_was_asked_for_except_an_undo(scene: Scene) -> None:
    job_id = await scene.running()
    await scene.ledger.jobs.request_cancel("acme", job_id, user=None, actor="ann")

    with pytest.raises(CancelRequested):
        await scene.begin(job_id)

    assert (await scene.begin(job_id, "undo.x", kind=EffectKind.UNDO)).attempt_id is not None


@pytest.mark.parametrize("state", sorted(FINAL | {JobState.DEAD}))
async def test_an_undo_begins_of_a_dead_job_and_of_none_that_is_over(scene: Scene, state: JobState) -> None:
    job = await scene.accept()
    await scene.move(job.id, state)

    try:
        await scene.begin(job.id, "undo.x", kind=EffectKind.UNDO)
        began = True
    except NotLive:
        began = False

    assert began == (state is JobState.DEAD)
    assert (await scene.job(job.id)).state is state


async def test_a_job_that_the_ledger_has_not_is_not_found(scene: Scene) -> None:
    with pytest.raises(PermanentError) as refused:
        await scene.begin("nothing")

    assert refused.value.category is Category.NOT_FOUND
