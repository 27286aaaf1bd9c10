"""What leaves: spans of which everything is gone that is not on the list.

A library that makes spans of its own, now or in a later version, puts messages of exceptions, addresses and
prompts into them. So nothing is trusted to be harmless: names and attributes have to be known ones, in the form
of a code or an id; events (where exceptions' texts are) and the words of a status never pass.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status

from agentjobs.tracing import names

log = structlog.get_logger()

UNKNOWN: Final = "unknown"
"""The name of a span that has none of ours."""

_CODE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+#-]{0,127}")
_ROUTE: Final = re.compile(r"(/[A-Za-z0-9_.{}:-]*)+|unknown")


class Wall(SpanExporter):
    """Passes on what may leave. Says once when nobody takes it, and once when somebody does again."""

    def __init__(self, outside: SpanExporter) -> None:
        self._outside = outside
        self._is_heard = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Called by the thread that sends: a job never waits for it."""
        result = self._outside.export([allowed(one) for one in spans])
        is_heard = result is SpanExportResult.SUCCESS
        if is_heard and not self._is_heard:
            log.info("spans_taken_again")
        if self._is_heard and not is_heard:
            log.warning("spans_not_taken")
        self._is_heard = is_heard
        return result

    def shutdown(self) -> None:
        """Nothing follows."""
        self._outside.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept back here."""
        return self._outside.force_flush(timeout_millis)


def allowed(span: ReadableSpan) -> ReadableSpan:
    """The same span with what may be told of it."""
    return ReadableSpan(
        name=_name(span.name),
        context=span.get_span_context(),
        parent=span.parent,
        resource=span.resource,
        attributes=_attributes(span.attributes),
        links=[Link(link.context, _attributes(link.attributes)) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _name(name: str) -> str:
    first, _, rest = name.partition(" ")
    if first in names.METHODS:
        return name if _ROUTE.fullmatch(rest) else UNKNOWN
    is_known = first in set(names.Span) and (not rest or _CODE.fullmatch(rest))
    return name if is_known else UNKNOWN


def _attributes(given: Mapping[str, Any] | None) -> dict[str, str | int]:
    return {name: value for name, value in (given or {}).items() if _may_be_told(name, value)}


def _may_be_told(name: str, value: object) -> bool:
    if name not in names.ATTRIBUTES:
        return False
    if isinstance(value, int):
        return True
    form = _ROUTE if name == names.HTTP_ROUTE else _CODE
    return isinstance(value, str) and form.fullmatch(value) is not None
