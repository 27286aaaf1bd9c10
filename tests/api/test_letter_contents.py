"""What one letter shows: every death, what was tried, what became of effects; and its build, its earlier input."""

from httpx import AsyncClient

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category
from agentjobs.domain.states import JobState
from tests.api.front import Front
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL

RECEIPT = {"id": "T-1"}


async def test_the_build_of_the_worker_is_told(front: Front, rita: AsyncClient) -> None:
    await front.scene.execute("INSERT INTO workers (id, number, identity, build) VALUES ('w1', 1, 'w', 'b-7')")
    job_id = await front.scene.dead()

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    assert (letter["worker_build"], letter["deaths"][0]["worker_build"]) == ("b-7", "b-7")


async def test_every_death_is_told_with_what_became_of_it(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    await rita.post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "mended"})
    await front.ledger.outcomes.resume(job_id, generation=1, policy_version="1")
    await front.scene.bury(job_id, generation=1, reason=Category.NOT_FOUND)

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    told = [
        (death["generation"], death["reason"], death["resolution"], death["resolved_by"], death["outcome"])
        for death in letter["deaths"]
    ]
    assert told == [(1, "access_denied", "redriven", "rita", "died_again"), (2, "not_found", None, None, None)]
    assert (letter["generation"], letter["state"], letter["reason"]) == (2, "open", "not_found")


async def test_the_attempts_are_counted_by_how_they_ended(front: Front, rita: AsyncClient) -> None:
    job_id = (await front.scene.accept()).id
    for number in (1, 2):
        attempt_id = await front.scene.begin_attempt(job_id, keys.PLAN, **MODEL_CALL, attempt=number)
        await front.scene.fail(attempt_id, release=True, wait_seconds=30.0 * number)
    await front.scene.begin_attempt(job_id, keys.PLAN, **MODEL_CALL, attempt=3)
    await front.scene.bury(job_id)

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    told = [
        (line["outcome"], line["category"], line["attempts"], line["wait_seconds"]) for line in letter["tried"]
    ]
    assert told == [("failed", "unavailable", 2, 90.0), ("crashed", None, 1, 0.0)]


async def test_a_discarded_job_says_of_each_effect_what_stays_and_why(front: Front, rita: AsyncClient) -> None:
    scene = front.scene
    job_id = await scene.running()
    undone, refused, lasting, doubtful, never = [keys.tool_step(n, "create_ticket") for n in (1, 2, 3, 4, 5)]
    for step in (undone, refused, lasting):
        await scene.done(job_id, step, RECEIPT)
    await scene.begin(job_id, doubtful, effect_class=EffectClass.UNSAFE)
    await scene.fail(await scene.begin_attempt(job_id, never), release=True, wait_seconds=None)
    undo = scene.intent(job_id, keys.undo_step(undone), kind=EffectKind.UNDO)
    attempt_id = await scene.begin_attempt(job_id, keys.undo_step(undone), kind=EffectKind.UNDO)
    await scene.ledger.effects.complete(undo, attempt_id, {}, undone_key=keys.step_key(job_id, undone))
    await scene.begin(job_id, keys.undo_step(refused), kind=EffectKind.UNDO)
    await scene.bury(job_id)
    before = (await rita.get(f"/v1/dead-letters/{job_id}")).json()["effects"]
    await scene.ledger.outcomes.finish(job_id, JobState.DISCARDED)

    letter = (await rita.get(f"/v1/dead-letters/{job_id}")).json()

    assert before == []
    assert [(effect["step"], effect["outcome"], effect["because"]) for effect in letter["effects"]] == [
        (undone, "undone", None),
        (refused, "stays", "undo_given_up"),
        (lasting, "stays", "no_undo_declared"),
        (doubtful, "in_doubt", None),
        (never, "not_done", None),
    ]
    job = (await front.of("ann").get(f"/v1/jobs/{job_id}")).json()
    assert job["result"]["effects"] == letter["effects"]


async def test_an_undo_that_was_refused_before_it_began_counts_as_given_up(
    front: Front, rita: AsyncClient
) -> None:
    scene = front.scene
    job_id = await scene.running()
    await scene.done(job_id, CREATE_TICKET, RECEIPT)
    await scene.bury(job_id)
    await scene.execute("UPDATE deaths SET step = $2 WHERE job_id = $1", job_id, keys.undo_step(CREATE_TICKET))
    await scene.ledger.outcomes.finish(job_id, JobState.DISCARDED)

    effects = (await rita.get(f"/v1/dead-letters/{job_id}")).json()["effects"]

    assert [(effect["outcome"], effect["because"]) for effect in effects] == [("stays", "undo_given_up")]


async def test_only_a_reviewer_of_the_tenant_reads_the_earlier_input(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead(text="something private")
    body = {"note": "room 7", "input": {"text": "something else"}}
    asked = await rita.post(f"/v1/dead-letters/{job_id}/redrive", json=body)
    path = f"/v1/dead-letters/{job_id}"

    letter = (await rita.get(path)).json()
    others = [await front.of(name).get(path) for name in ("ann", "adam", "gus", "ann_of_globex")]
    listed = await rita.get("/v1/dead-letters")
    job = await front.of("ann").get(f"/v1/jobs/{job_id}")
    events = await front.ledger.jobs.events(job_id)
    audit = await rita.get("/v1/audit")

    assert letter["input"] == {"text": "something else"}
    change = letter["input_changes"][0]
    assert (change["old_input"], change["changed_by"], change["note"]) == (
        {"text": "something private"},
        "rita",
        "room 7",
    )
    assert [answer.status_code for answer in others] == [403, 403, 404, 403]
    for told in (asked.text, listed.text, job.text, audit.text, str(events), *(answer.text for answer in others)):
        assert "something" not in told
