"""A job with a canary in every place where content may stand, and a look for it through the whole database."""

from collections.abc import Sequence
from typing import Any

from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category, failure
from agentjobs.domain.states import JobState
from agentjobs.ledger.corrections import Correction
from tests.ledger.scene import CREATE_TICKET, MODEL_CALL, Scene

CANARY = "Kanarienvogel"
CALL_OUTSIDE = keys.tool_step(2, "page_somebody")


async def planted(scene: Scene, canary: str = CANARY, *, user: str = "ann", key: str | None = None) -> str:
    """A job that has died twice, was corrected and redriven, and is dead; its id. It has a ticket."""
    job_id = (await scene.accept(text=f"{canary} input", user=user, key=key)).id
    await scene.done(job_id, keys.PLAN, {"text": f"{canary} plan"}, **MODEL_CALL)
    await _ticket(scene, job_id, canary)
    await _called_outside(scene, job_id, canary)
    await _tried(scene, job_id, canary)
    await _died(scene, job_id, canary, generation=0)
    await _corrected_and_redriven(scene, job_id, canary)
    await _answering(scene, job_id, canary)
    await _approved(scene, job_id, canary)
    await _died(scene, job_id, canary, generation=1)
    return job_id


async def discarded(scene: Scene, job_id: str, canary: str = CANARY) -> None:
    """A person gives the dead job up, and it ends."""
    await scene.ledger.dead_letters.request(
        "discard", scene.tenant, job_id, actor="rita", note=f"{canary} discard", payload={}
    )
    await scene.execute("DELETE FROM outbox WHERE job_id = $1", job_id)
    await finished(scene, job_id, JobState.DISCARDED)


async def succeeded(scene: Scene, canary: str = CANARY, **changes: Any) -> str:
    """A job that came to its answer; its id."""
    job_id = (await scene.accept(text=f"{canary} input", **changes)).id
    await scene.done(job_id, keys.ANSWER, {"text": f"{canary} answer"}, **MODEL_CALL)
    await finished(scene, job_id, JobState.SUCCEEDED)
    return job_id


async def finished(scene: Scene, job_id: str, state: JobState) -> None:
    """The job ends so, and nothing of it waits in the outbox."""
    assert await scene.ledger.outcomes.finish(job_id, state) is state
    await scene.execute("DELETE FROM outbox WHERE job_id = $1", job_id)


async def ended_days_ago(scene: Scene, job_ids: Sequence[str], days: float) -> None:
    """As if they had ended (and been erased, if they were) so long ago."""
    await scene.execute(
        "UPDATE jobs SET finalized_at = now() - make_interval(secs => $2 * 86400.0), "
        "erased_at = CASE WHEN erased_at IS NOT NULL THEN now() - make_interval(secs => $2 * 86400.0) END "
        "WHERE id = ANY ($1)",
        list(job_ids),
        days,
    )


async def places_of(scene: Scene, word: str) -> set[str]:
    """Every table and column with the word in it, whatever the column's type is."""
    columns = await scene.rows(
        "SELECT table_name, column_name FROM information_schema.columns JOIN pg_tables ON tablename = table_name "
        "WHERE table_schema = 'public' AND schemaname = 'public'"
    )
    found = set()
    for column in columns:
        table, name = column["table_name"], column["column_name"]
        statement = f"SELECT EXISTS (SELECT FROM \"{table}\" WHERE \"{name}\"::text ILIKE '%' || $1 || '%') AS hit"
        if (await scene.rows(statement, word))[0]["hit"]:
            found.add(f"{table}.{name}")
    return found


async def _ticket(scene: Scene, job_id: str, canary: str) -> None:
    intent = scene.intent(job_id)
    attempt_id = await scene.begin_attempt(job_id)
    async with scene.ledger.database.transaction() as connection:
        number = await scene.ledger.tickets.create(
            connection,
            tenant=scene.tenant,
            operation_key=keys.step_key(job_id, CREATE_TICKET),
            job_id=job_id,
            subject=f"{canary} subject",
            body=f"{canary} body",
            category=f"{canary} category",
            urgency="normal",
            language="de",
        )
        assert await scene.ledger.effects.complete(
            intent, attempt_id, {"id": f"T-{number}", "url": f"{canary} url"}, connection=connection
        )


async def _called_outside(scene: Scene, job_id: str, canary: str) -> None:
    outside = {"name": "page_somebody", "effect_class": EffectClass.IDEMPOTENT, "kind": EffectKind.TOOL}
    await scene.done(job_id, CALL_OUTSIDE, {"id": f"{canary} page"}, **outside)


async def _tried(scene: Scene, job_id: str, canary: str) -> None:
    attempt_id = await scene.begin_attempt(job_id, keys.ANSWER, **MODEL_CALL)
    failed = failure(Category.UNAVAILABLE, f"{canary} message", keys.ANSWER)
    await scene.ledger.effects.fail(attempt_id, failed, wait_seconds=1, release=True, paid=None)


async def _died(scene: Scene, job_id: str, canary: str, *, generation: int) -> None:
    died_of = failure(Category.ACCESS_DENIED, f"{canary} death", CREATE_TICKET)
    await scene.ledger.outcomes.bury(job_id, generation=generation, failure=died_of, worker="w1")


async def _corrected_and_redriven(scene: Scene, job_id: str, canary: str) -> None:
    await scene.ledger.dead_letters.request(
        "redrive",
        scene.tenant,
        job_id,
        actor="rita",
        note=f"{canary} redrive",
        payload={"policy": "original", "again": False, "input_corrected": True},
        correction=Correction(text=f"{canary} corrected"),
    )
    await scene.ledger.outcomes.resume(job_id, generation=1, policy_version="1", again=False)


async def _answering(scene: Scene, job_id: str, canary: str) -> None:
    intent = scene.intent(job_id, keys.ANSWER, run_id="run-2", **MODEL_CALL)
    attempt_id = await scene.begin_attempt(job_id, keys.ANSWER, run_id="run-2", **MODEL_CALL)
    await scene.ledger.effects.write_text(intent, attempt_id, f"{canary} piece")
    await scene.ledger.effects.remember_response(attempt_id, model="m", response_id=f"{canary} response")


async def _approved(scene: Scene, job_id: str, canary: str) -> None:
    await scene.execute(
        "INSERT INTO approvals (effect_key, number, job_id, tenant, generation, step, tool, fingerprint, "
        "expires_at, state, decided_at, decided_by, note) "
        "VALUES ($1, 1, $2, $3, 1, 's', 't', $4, now(), 'rejected', now(), 'rita', $5)",
        keys.step_key(job_id, CALL_OUTSIDE),
        job_id,
        scene.tenant,
        f"{canary} fingerprint",
        f"{canary} note",
    )
