"""Spans begin and end here, so that each failure is told alike: by its code, never by its words."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, Tracer

from agentjobs.domain.failures import JobError
from agentjobs.tracing import contexts, names

Attributes = Mapping[str, str | int]

HERE: Final = object()
"""The parent is whatever span is current."""


UNTOLD: Final = trace.INVALID_SPAN
"""Of what nobody is told."""


_OFF: Final[Tracer] = trace.NoOpTracer()


class _Switch:
    """Not OpenTelemetry's own global provider: libraries that find one there make spans of their own."""

    tracer: Tracer = _OFF


def use(tracer: Tracer) -> Tracer:
    """Tell of spans from now on, in the whole process. Returns what was used before."""
    before, _Switch.tracer = _Switch.tracer, tracer
    return before


def is_on() -> bool:
    """Whether this process tells of spans."""
    return _Switch.tracer is not _OFF


def begun(
    name: str,
    kind: SpanKind,
    attributes: Attributes,
    *,
    parent: SpanContext | object | None = HERE,
    links: Sequence[Link] = (),
    at: datetime | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
) -> Span:
    """A span that goes on until it is ended; one that never is, is told to nobody.

    parent: None for the first span of a trace. at: when it began, if not now. trace_id (where there is no parent)
    and span_id: in hexadecimal digits, if they are not to be random.
    """
    with contexts.given_ids(trace_id=trace_id, span_id=span_id):
        return _Switch.tracer.start_span(
            name,
            context=None if parent is HERE else contexts.under(parent),
            kind=kind,
            attributes=dict(attributes),
            links=links,
            start_time=None if at is None else _nanoseconds(at),
        )


@contextmanager
def current(span: Span, code: Callable[[BaseException], str] | None = None) -> Iterator[Span]:
    """The block is the span: others begin under it, and it ends with it. code: why it failed; `code_of` else."""
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    except BaseException as error:
        failed(span, (code or code_of)(error))
        raise
    finally:
        span.end()


def failed(span: Span, code: str) -> None:
    """What the span is of has failed for this reason. (Its status has no words: they could quote.)"""
    span.set_attribute(names.ERROR_TYPE, code)
    span.set_status(StatusCode.ERROR)


def code_of(error: BaseException) -> str:
    """The category of a failure of ours; of any other, its class."""
    match error:
        case JobError():
            return error.category.value
        case asyncio.CancelledError():
            return "cancelled"
        case _:
            return type(error).__name__


def link(to: SpanContext, why: names.Link) -> Link:
    """A pointer at another span."""
    return Link(to, {names.LINK: why.value})


def about(attributes: Attributes) -> None:
    """Tell this of the current span, which began before it was known."""
    trace.get_current_span().set_attributes(dict(attributes))


def _nanoseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000
