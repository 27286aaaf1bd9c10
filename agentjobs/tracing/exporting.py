"""Spans on their way out: ids, the wall, and OTLP over HTTP by a thread that nobody waits for."""

import logging
import threading
from collections.abc import Mapping
from typing import Any, Final

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from agentjobs import __version__
from agentjobs.tracing import names, spans
from agentjobs.tracing.contexts import given
from agentjobs.tracing.wall import Wall

FLUSH_SECONDS: Final = 2.0
"""At the end of a process: who takes no spans by then does not get the last ones."""

_REPEATING: Final = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal")
"""Loggers with a line for each batch that is not taken, and each span for which there is no room. The wall says it
once."""


class Unheard(requests.Session):
    """Of an answer the status and the headers count. Its body is never read: it might have no end."""

    def request(self, *args: Any, **given: Any) -> requests.Response:
        """The answer, closed."""
        answer = super().request(*args, **{**given, "stream": True})
        answer.close()
        return answer


class Ids(RandomIdGenerator):
    """Random, but where `given_ids` says otherwise."""

    def generate_span_id(self) -> int:
        """The span's id."""
        span_id = given()[1]
        return super().generate_span_id() if span_id is None else int(span_id, 16)

    def generate_trace_id(self) -> int:
        """The trace's id, of a span without a parent."""
        trace_id = given()[0]
        return super().generate_trace_id() if trace_id is None else int(trace_id, 16)

    def is_trace_id_random(self) -> bool:
        """Not told: the flag belongs to a later version of traceparent than the one that is written here."""
        return False


def begin(environment: Mapping[str, str], name: str) -> TracerProvider:
    """Trace in this process from now on. name: of this process, where the variables name no service."""
    for repeating in _REPEATING:
        logging.getLogger(repeating).setLevel(logging.CRITICAL)
    outside = OTLPSpanExporter(session=Unheard())
    provider = provider_of(BatchSpanProcessor(Wall(outside)), resource_of(environment, name))
    spans.use(provider.get_tracer(names.SCOPE))
    return provider


def provider_of(processor: SpanProcessor, resource: Resource | None = None) -> TracerProvider:
    """One whose spans go to this processor."""
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def end(provider: TracerProvider) -> None:
    """Send what is left, within FLUSH_SECONDS."""
    # In a thread that may be left behind: the SDK's own limit is half a minute.
    ending = threading.Thread(target=provider.shutdown, name="last-spans", daemon=True)
    ending.start()
    ending.join(FLUSH_SECONDS)


def resource_of(environment: Mapping[str, str], name: str) -> Resource:
    """Who tells: named by the variables, or by the process."""
    ours = Resource({SERVICE_NAME: f"agentjobs-{name}", SERVICE_VERSION: __version__})
    theirs = Resource.create()  # from the variables, with a service.name in any case
    listed = environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    is_named = "OTEL_SERVICE_NAME" in environment or f"{SERVICE_NAME}=" in listed
    return ours.merge(theirs) if is_named else theirs.merge(ours)
