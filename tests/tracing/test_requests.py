"""A request is a span: a child of its caller's, and the parent of the job that it submits."""

from typing import Any

import httpx
import pytest

from agentjobs.outbox.words import word_told
from tests.api.front import REQUEST, Front
from tests.tracing.told import Span, Told

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"


async def submit(front: Front, traceparent: str | None = None, **more: str) -> dict[str, Any]:
    """A job of ann's."""
    headers = more if traceparent is None else {"traceparent": traceparent, **more}
    response = await front.of("ann").post("/v1/jobs", json=REQUEST, headers=headers)
    assert response.status_code == 202
    job: dict[str, Any] = response.json()
    return job


async def stored(front: Front, job_id: str) -> tuple[Any, ...]:
    """Where the ledger says that the job's spans belong."""
    row = await front.ledger.database.pool.fetchrow(
        "SELECT trace_id, trace_parent, trace_sampled FROM jobs WHERE id = $1", job_id
    )
    assert row is not None
    return tuple(row)


async def start_told(front: Front, told: Told) -> Span:
    """The span of the word by which the relay starts the job."""
    async with front.ledger.database.transaction() as connection:
        (row,) = await front.ledger.outbox.claim_starts(connection, 1)
        with word_told(row):
            pass
    return next(one for one in told.spans if one.name == "outbox start_job")


async def test_a_submission_is_a_child_of_its_caller_and_the_job_a_child_of_it(front: Front, told: Told) -> None:
    job = await submit(front, f"00-{TRACE}-{CALLER}-01")
    (request,) = told.spans
    start = await start_told(front, told)

    assert (request.name, request.trace_id, request.parent_id) == ("POST /v1/jobs", TRACE, CALLER)
    assert (start.trace_id, start.parent_id) == (TRACE, request.span_id)
    assert await stored(front, job["id"]) == (TRACE, request.span_id, True)
    assert job["trace_id"] == TRACE
    assert {name: value for name, value in request.attributes.items() if name != "agentjobs.request.id"} == {
        "agentjobs.agent": "support-triage",
        "agentjobs.job.id": job["id"],
        "agentjobs.tenant": "acme",
        "http.request.method": "POST",
        "http.response.status_code": 202,
        "http.route": "/v1/jobs",
    }


async def test_a_submission_without_a_caller_begins_the_jobs_trace(front: Front, told: Told) -> None:
    job = await submit(front)

    (request,) = told.spans
    assert (request.trace_id, request.parent_id) == (job["trace_id"], "")
    assert await stored(front, job["id"]) == (job["trace_id"], request.span_id, True)


async def test_a_caller_who_does_not_sample_is_obeyed(front: Front, told: Told) -> None:
    job = await submit(front, f"00-{TRACE}-{CALLER}-00")

    trace_id, parent, sampled = await stored(front, job["id"])
    assert (trace_id, sampled) == (TRACE, False)
    assert parent != CALLER
    assert told.spans == []


async def test_a_span_waits_in_the_outbox_as_long_as_its_row(front: Front, told: Told) -> None:
    job = await submit(front)
    await front.scene.execute(
        "UPDATE outbox SET created_at = now() - interval '1 hour' WHERE job_id = $1", job["id"]
    )

    start = await start_told(front, told)

    assert 3_600 <= (start.ended - start.began) / 1e9 < 3_700


async def test_a_word_that_is_told_twice_is_the_same_span(front: Front, told: Told) -> None:
    await submit(front)

    first, again = await start_told(front, told), await start_told(front, told)

    ids = [one.span_id for one in told.spans if one.name == "outbox start_job"]
    assert (len(ids), {first.span_id, again.span_id}) == (2, set(ids))


async def test_a_word_that_nobody_took_is_not_told(front: Front, told: Told) -> None:
    await submit(front)

    async with front.ledger.database.transaction() as connection:
        (row,) = await front.ledger.outbox.claim_starts(connection, 1)
        with pytest.raises(TimeoutError), word_told(row):
            raise TimeoutError

    assert [one.name for one in told.spans] == ["POST /v1/jobs"]


async def test_a_redrive_points_at_the_request_that_ordered_it(front: Front, told: Told) -> None:
    job_id = await front.scene.dead()

    response = await front.of("rita").post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "again"})

    assert response.status_code == 202
    await _points_at_its_order(front, told, "POST /v1/dead-letters/{id}/redrive")


async def test_a_letter_of_a_bulk_redrive_points_at_the_request_that_ordered_all(front: Front, told: Told) -> None:
    await front.scene.dead()

    response = await front.of("rita").post("/v1/redrives", json={"note": "again", "filter": {}, "dry_run": False})
    assert response.status_code in {200, 201, 202}, response.text
    await front.ledger.redrives.ask(response.json()["id"], 1)

    await _points_at_its_order(front, told, "POST /v1/redrives")


async def _points_at_its_order(front: Front, told: Told, name: str) -> None:
    async with front.ledger.database.transaction() as connection:
        rows = await front.ledger.outbox.claim_commands(connection, 10)
        with word_told(rows[0]):
            pass
    (order,) = [one for one in told.spans if one.name == name]
    (word,) = [one for one in told.spans if one.name == "outbox redrive_job"]
    assert word.links == ((order.trace_id, order.span_id, "ordered_by"),)
    assert word.trace_id != order.trace_id


async def test_what_a_redrive_was_ordered_by_is_not_among_the_jobs_events(front: Front) -> None:
    job_id = await front.scene.dead()
    await front.of("rita").post(f"/v1/dead-letters/{job_id}/redrive", json={"note": "again"})

    told = [*await front.scene.rows("SELECT data::text FROM job_events")]

    assert "00-" not in str(told)


async def test_an_error_of_ours_is_a_failed_span_and_one_of_the_callers_is_not(
    front: Front, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("canary")

    assert (await front.of("ann").get("/v1/jobs/unknown")).status_code == 404
    monkeypatch.setattr(front.ledger.jobs, "page", broken)
    assert (await front.of("ann").get("/v1/jobs")).status_code == 500

    missing, failed = told.spans
    assert (missing.name, missing.is_error, missing.attributes["http.response.status_code"]) == (
        "GET /v1/jobs/{id}",
        False,
        404,
    )
    assert (failed.is_error, failed.error) == (True, "500")
    assert "canary" not in str(told.spans)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_are_not_told(front: Front, told: Told, path: str) -> None:
    await front.of(None).get(path)

    assert told.spans == []


async def test_a_path_that_nobody_serves_is_told_without_it(front: Front, told: Told) -> None:
    await front.of(None).get("/canary/path?canary=query")

    assert [one.name for one in told.spans] == ["GET unknown"]
    assert "canary" not in str(told.spans)


async def test_the_answer_does_not_depend_on_the_trace(front: Front) -> None:
    answers: list[httpx.Response] = [
        await front.of("ann").post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": "k", **headers})
        for headers in ({"traceparent": f"00-{TRACE}-{CALLER}-01"}, {})
    ]

    assert answers[0].json() == answers[1].json()
