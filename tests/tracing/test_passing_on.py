"""Whoever is asked on a job's behalf gets the header traceparent: models, trackers, receivers of webhooks."""

from contextlib import AbstractContextManager

import httpx
import pytest
from opentelemetry.trace import Span, SpanKind

from agentjobs.domain.states import JobState
from agentjobs.enqueue import enqueue
from agentjobs.tracing import spans
from agentjobs.tracing.runs import run_of
from agentjobs.trackers.http import Destination
from tests.alerts.receiver import Receiver
from tests.ledger.scene import Scene
from tests.providers.scene import CHAT, RESPONSES, brief
from tests.providers.scene import scene as provider_scene
from tests.tracing.told import Told
from tests.webhooks.hooks import Hooks, sending

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SPAN}-01"


def here() -> AbstractContextManager[Span]:
    """A block within a span of this place."""
    return spans.current(spans.begun("run x", SpanKind.INTERNAL, {}, parent=None, trace_id=TRACE, span_id=SPAN))


async def test_a_tracker_gets_it(told: Told) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        tracker = Destination("a tracker", "http://tracker.test", headers={}, client=client)
        with here():
            await tracker.ask("issues")
        await tracker.ask("issues")

    assert [request.headers.get("traceparent") for request in asked] == [HEADER, None]
    assert len(told.spans) == 1


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_a_model_gets_it_in_one_piece_and_streaming(
    monkeypatch: pytest.MonkeyPatch, told: Told, name: str
) -> None:
    async with provider_scene(monkeypatch, name=name) as played:
        with here():
            await played.provider.next_step(brief(), played.heard)
            await played.provider.answer(brief(), played.heard)
        await played.provider.answer(brief(), played.heard)

        assert [asked.headers.get("traceparent") for asked in played.double.asked] == [HEADER, HEADER, None]
    assert len(told.spans) == 1


@pytest.mark.parametrize(
    ("state", "run"), [(JobState.SUCCEEDED, 0), (JobState.DEAD, 0), (JobState.CANCELLED, None)]
)
async def test_a_receiver_gets_it_in_the_jobs_trace(
    scene: Scene, receiver: Receiver, told: Told, state: JobState, run: int | None
) -> None:
    place = {"trace_id": TRACE, "trace_parent": SPAN, "trace_sampled": True}
    async with sending() as sender:
        hooks = Hooks(scene, sender)
        await hooks.add(receiver.url)
        job = await _brought_to(scene, state, place)
        await hooks.attempt()

    (span,) = told.spans
    parent = SPAN if run is None else f"{run_of(TRACE, job, run, sampled=True).span_id:016x}"
    assert (span.name, span.trace_id, span.parent_id) == (f"webhook job.{state}", TRACE, parent)
    assert receiver.received[0].headers["traceparent"] == f"00-{TRACE}-{span.span_id}-01"
    assert (span.attributes["agentjobs.job.id"], span.attributes["agentjobs.attempt"]) == (job, 1)
    assert (span.attributes["http.response.status_code"], span.is_error) == (204, False)


async def _brought_to(scene: Scene, state: JobState, place: dict[str, object]) -> str:
    if state is JobState.CANCELLED:  # before it ran
        job = await scene.accept(**place)
        await scene.ledger.jobs.request_cancel("acme", job.id, user=None, actor="ann")
        return job.id
    job_id = await scene.running(**place)
    if state is JobState.DEAD:
        await scene.bury(job_id)
    else:
        await scene.ledger.outcomes.finish(job_id, state)
    return job_id


async def test_a_receiver_that_is_away_or_refuses_is_a_failed_span(
    scene: Scene, receiver: Receiver, told: Told
) -> None:
    receiver.status = 503
    async with sending() as sender:
        hooks = Hooks(scene, sender)
        await hooks.add(receiver.url)
        await hooks.add("http://127.0.0.1:1/hook/canary-path")
        await _brought_to(scene, JobState.SUCCEEDED, {})
        await hooks.attempt()

    assert {(one.error, one.is_error) for one in told.spans} == {("503", True), ("unreachable", True)}
    assert "canary" not in str(told.spans)


async def test_a_job_enqueued_within_a_span_joins_its_trace(scene: Scene, told: Told) -> None:
    async with scene.ledger.database.transaction() as connection:
        with here():
            await enqueue(connection, tenant="acme", user="ann", text="My printer is on fire")
        await enqueue(connection, tenant="acme", user="ann", text="My printer is on fire")

    first, second = await scene.rows(
        "SELECT trace_id, trace_parent, trace_sampled FROM jobs ORDER BY created_at, trace_id = $1 DESC", TRACE
    )
    assert tuple(first.values()) == (TRACE, SPAN, True)
    assert (second["trace_parent"], second["trace_sampled"]) == (None, None)
    assert second["trace_id"] != TRACE
    assert len(told.spans) == 1
