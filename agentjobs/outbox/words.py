"""A row of the outbox as a span: from the moment at which it was written to that at which Temporal has it.

Only what was delivered is told. A row that is put off goes out under the same id, so it stays one span, and what
keeps it waiting is seen in its length.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Link, Span, SpanContext, SpanKind

from agentjobs.domain import keys
from agentjobs.ledger.outbox import OutboxRow, Topic
from agentjobs.tracing import contexts, names, spans
from agentjobs.tracing.runs import Run, current, start_of

_BEGINS_A_RUN = frozenset({Topic.START_JOB, Topic.REDRIVE_JOB, Topic.DISCARD_JOB})


@contextmanager
def word_told(row: OutboxRow) -> Iterator[None]:
    """Around the telling; what it tells Temporal carries the run that it begins."""
    if not spans.is_on():
        yield
        return
    ordered_by = None if row.traceparent is None else contexts.read(row.traceparent)
    span = _begun(row, ordered_by)
    token = current.set(_run(row, span) if row.topic in _BEGINS_A_RUN else None)
    try:
        yield
    finally:
        current.reset(token)
    span.end()


def request_of(trace_id: str, parent: str | None, *, sampled: bool | None) -> SpanContext | None:
    """The span of the request by which a job was submitted."""
    return None if parent is None else contexts.place(trace_id, parent, sampled=bool(sampled))


def _begun(row: OutboxRow, ordered_by: SpanContext | None) -> Span:
    return spans.begun(
        f"{names.Span.OUTBOX} {row.topic}",
        SpanKind.PRODUCER,
        {**_about(row), names.TOPIC: row.topic.value, names.ATTEMPT: row.attempts + 1},
        parent=request_of(row.trace_id, row.trace_parent, sampled=row.trace_sampled),
        links=_links(ordered_by),
        at=row.created_at,
        trace_id=row.trace_id,
        span_id=_id(row),
    )


def _id(row: OutboxRow) -> str:
    if row.topic is Topic.START_JOB:
        return f"{start_of(row.trace_id, row.job_id, sampled=True).span_id:016x}"
    return contexts.derived(row.trace_id, "word", row.id)


def _links(ordered_by: SpanContext | None) -> list[Link]:
    return [] if ordered_by is None else [spans.link(ordered_by, names.Link.ORDERED)]


def _about(row: OutboxRow) -> dict[str, Any]:
    return {
        names.JOB: row.job_id,
        names.TENANT: row.tenant,
        names.AGENT: row.agent,
        names.GENERATION: _generation(row),
        names.WORKFLOW_ID: keys.workflow_id(row.job_id),
    }


def _run(row: OutboxRow, word: Span) -> Run:
    return Run(
        told_by=contexts.written(word.get_span_context()),
        ordered_by=row.traceparent,
        job_id=row.job_id,
        tenant=row.tenant,
        agent=row.agent,
        generation=_generation(row),
    )


def _generation(row: OutboxRow) -> int:
    # An order is on the death that it names, also when the job has died again meanwhile.
    generation: int = row.payload.get("generation", row.generation)
    return generation
