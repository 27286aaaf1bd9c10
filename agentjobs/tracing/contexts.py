"""Where a span stands: the header traceparent (W3C Trace Context, section 3.2), and ids that follow from a job's.

A span of a job that several processes must be able to name has an id that is computed: a run is the parent of
attempts made by workers that never met, and a repeated delivery is the same span once more, not a second one.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

HEADER: Final = "traceparent"

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<later>-.*)?"
)
_NONE: Final = (None, None)
_given: ContextVar[tuple[str | None, str | None]] = ContextVar("agentjobs_given_ids", default=_NONE)


@contextmanager
def given_ids(*, trace_id: str | None, span_id: str | None) -> Iterator[None]:
    """A span that begins in the block has these ids; `trace_id` only one that has no parent."""
    token = _given.set((trace_id, span_id))
    try:
        yield
    finally:
        _given.reset(token)


def given() -> tuple[str | None, str | None]:
    """The ids that are given here: of the trace, and of the span."""
    return _given.get()


def derived(trace_id: str, *parts: str | int) -> str:
    """The id of the one span of this trace that these parts name: 16 hexadecimal digits, not all of them zero."""
    digest = hashlib.sha256("/".join(map(str, (trace_id, *parts))).encode()).hexdigest()
    return digest[:15] + "1"


def place(trace_id: str, span_id: str, *, sampled: bool) -> SpanContext:
    """A span elsewhere."""
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)


def under(parent: object) -> Context:
    """For spans below this one; of None, for the first span of a trace."""
    if not isinstance(parent, SpanContext):
        return Context()
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())


def read(traceparent: str) -> SpanContext | None:
    """Which span the value of the header names; None when it is not valid."""
    told = _TRACEPARENT.fullmatch(traceparent)
    if told is None or not _may_be(told["version"], told["later"]):
        return None
    found = place(told["trace"], told["span"], sampled=bool(int(told["flags"], 16) & TraceFlags.SAMPLED))
    return found if found.is_valid else None


def written(context: SpanContext) -> str:
    """The value of the header that names this span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & TraceFlags.SAMPLED:02x}"


def current_traceparent() -> str | None:
    """The value of the header for whoever is asked now; None outside of any trace."""
    context = trace.get_current_span().get_span_context()
    return written(context) if context.is_valid else None


def passed_on() -> dict[str, str]:
    """The header for a request that is sent now."""
    value = current_traceparent()
    return {} if value is None else {HEADER: value}


def _may_be(version: str, later: str | None) -> bool:
    # Version 00 ends after the flags; a later one may go on, and is read as far as it is known here.
    return version != "ff" and (version != "00" or later is None)
