"""The span of a request: a child of its caller's, if the header traceparent names one (W3C Trace Context)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import Request
from opentelemetry.trace import Span, SpanContext, SpanKind

from agentjobs.tracing import contexts, names, spans

_UNTOLD: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds, by machines."""

SERVER_ERROR: Final = 500


def caller_of(request: Request) -> SpanContext | None:
    """The caller's span. None without a valid header: then a new trace begins."""
    given = request.headers.getlist(contexts.HEADER)
    return contexts.read(given[0].strip(" \t")) if len(given) == 1 else None


@contextmanager
def request_span(request: Request, request_id: str) -> Iterator[Span]:
    """The block answers the request. What the span is called is known at its end: see `answered`."""
    if request.scope["path"] in _UNTOLD:
        yield spans.UNTOLD
        return
    caller = caller_of(request)
    span = spans.begun("request", SpanKind.SERVER, {names.REQUEST: request_id}, parent=caller)
    with spans.current(span):
        yield span


def answered(span: Span, *, method: str, route: str, status: int) -> None:
    """The answer to the span's request is out."""
    span.update_name(f"{method} {route}")
    span.set_attributes({names.HTTP_METHOD: method, names.HTTP_ROUTE: route, names.HTTP_STATUS: status})
    if status >= SERVER_ERROR:
        spans.failed(span, str(status))
