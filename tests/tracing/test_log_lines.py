"""A line of the log that is written within a span says in which."""

import logging

import structlog
from opentelemetry.trace import SpanKind

from agentjobs.tracing import spans
from tests.test_logs import Said, said
from tests.tracing.told import Told

__all__ = ["said"]


def test_a_line_within_a_span_has_its_ids_and_one_outside_has_none(said: Said, told: Told) -> None:
    with spans.current(spans.begun("run x", SpanKind.INTERNAL, {})):
        structlog.get_logger("agentjobs.tests").info("within")
        logging.getLogger("uvicorn.error").warning("Within a library")
    structlog.get_logger("agentjobs.tests").info("outside")

    (span,) = told.spans
    assert [(event.get("trace_id"), event.get("span_id")) for event in said.events] == [
        (span.trace_id, span.span_id),
        (span.trace_id, span.span_id),
        (None, None),
    ]
