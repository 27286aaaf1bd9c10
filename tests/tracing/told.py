"""Spans as a collector gets them, and the tree that they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentjobs.tracing import names, spans
from agentjobs.tracing.exporting import provider_of
from agentjobs.tracing.wall import Wall

Value = str | int
ERROR = trace_pb2.Status.STATUS_CODE_ERROR


@dataclass(frozen=True)
class Span:
    """One span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for the first one of a trace."""

    service: str
    attributes: dict[str, Value]
    links: tuple[tuple[str, str, Value], ...]
    """(trace, span, why)."""

    began: int
    ended: int
    """Nanoseconds since 1970."""

    is_error: bool

    @property
    def error(self) -> Value | None:
        """Why it failed."""
        return self.attributes.get("error.type")


@dataclass
class Tree:
    """All spans of one trace."""

    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        """In the order in which they began."""
        return sorted((one for one in self.spans if one.name == name), key=lambda one: one.began)

    def one(self, name: str) -> Span:
        """The only one of this name."""
        found = self.named(name)
        assert len(found) == 1, f"{len(found)} spans are named {name!r}; there are {self.names()}"
        return found[0]

    def under(self, parent: Span) -> list[str]:
        """The names of its children, in the order in which they began."""
        children = [one for one in self.spans if one.parent_id == parent.span_id]
        return [one.name for one in sorted(children, key=lambda one: one.began)]

    def parent(self, child: Span) -> Span:
        """Whose child it is."""
        return next(one for one in self.spans if one.span_id == child.parent_id)

    def names(self) -> list[str]:
        """In the order in which they began."""
        return [one.name for one in sorted(self.spans, key=lambda one: one.began)]

    def orphans(self, *elsewhere: str) -> list[Span]:
        """Spans whose parent nobody told of, and is none of those elsewhere."""
        known = {one.span_id for one in self.spans} | {"", *elsewhere}
        return [one for one in self.spans if one.parent_id not in known]

    def twice(self) -> list[str]:
        """Names of spans that were told more than once."""
        ids = [one.span_id for one in self.spans]
        return [one.name for one in self.spans if ids.count(one.span_id) > 1]


def trees(spans: Iterable[Span]) -> dict[str, Tree]:
    """By trace."""
    found: dict[str, Tree] = {}
    for one in spans:
        found.setdefault(one.trace_id, Tree()).spans.append(one)
    return found


def decoded(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """The spans of one message."""
    for of_resource in request.resource_spans:
        service = str(_attributes(of_resource.resource.attributes).get("service.name"))
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield _span(span, service)


class Told:
    """What a process in this test has told through the wall."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = provider_of(SimpleSpanProcessor(Wall(self._exporter)))

    @property
    def spans(self) -> list[Span]:
        """So far."""
        return list(decoded(encode_spans(self.finished)))

    @property
    def finished(self) -> tuple[ReadableSpan, ...]:
        """So far, as the SDK has them."""
        return self._exporter.get_finished_spans()

    def tree(self, trace_id: str) -> Tree:
        """The spans of this trace."""
        return trees(self.spans).get(trace_id, Tree())


@contextmanager
def telling() -> Iterator[Told]:
    """This process tells of spans while the block runs."""
    told = Told()
    before = spans.use(told.provider.get_tracer(names.SCOPE))
    try:
        yield told
    finally:
        spans.use(before)


def _span(span: trace_pb2.Span, service: str) -> Span:
    assert not span.events
    assert not span.status.message
    assert not span.trace_state
    return Span(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        service=service,
        attributes=_attributes(span.attributes),
        links=tuple(
            (link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)["agentjobs.link"])
            for link in span.links
        ),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        is_error=span.status.code == ERROR,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    return value.int_value if value.HasField("int_value") else value.string_value
