"""What leaves a process is on the list, in the form of a code or an id; nothing else, whoever made the span."""

import logging
from collections.abc import Sequence

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes, http_attributes
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from agentjobs.domain.failures import Category, RetryableError
from agentjobs.tracing import names, spans
from agentjobs.tracing.exporting import provider_of
from agentjobs.tracing.wall import Wall
from tests.tracing.told import Told

CANARY = "canary of a user"
ELSEWHERE = SpanContext(1, 2, is_remote=True)


def test_a_librarys_span_is_stripped_of_all_that_is_not_known(told: Told) -> None:
    tracer = told.provider.get_tracer("a library")
    where = Link(ELSEWHERE, {"agentjobs.link": "died_run", "why": CANARY})

    with pytest.raises(ValueError), tracer.start_as_current_span(f"POST {CANARY}", links=[where]) as span:
        span.set_attributes({"gen_ai.input.messages": CANARY, "agentjobs.step": CANARY, "agentjobs.attempt": 2})
        span.add_event(CANARY, {"exception.message": CANARY})
        span.set_status(Status(StatusCode.ERROR, CANARY))
        raise ValueError(CANARY)

    (left,) = told.finished
    assert "canary" not in left.to_json()
    assert (left.name, dict(left.attributes or {}), left.events) == ("unknown", {"agentjobs.attempt": 2}, ())
    assert [dict(link.attributes or {}) for link in left.links] == [{"agentjobs.link": "died_run"}]
    assert (left.status.status_code, left.status.description) == (StatusCode.ERROR, None)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("run support-triage", "run support-triage"),
        ("attempt run_tool", "attempt run_tool"),
        ("chat gpt-4.1-mini", "chat gpt-4.1-mini"),
        ("POST /v1/jobs/{id}/cancel", "POST /v1/jobs/{id}/cancel"),
        ("GET unknown", "GET unknown"),
        ("chat two words", "unknown"),
        ("GET /v1/jobs?text=x", "unknown"),
        ("RunWorkflow:AgentJob", "unknown"),
        ("my printer burns", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_name_is_one_of_ours_with_one_code(told: Told, name: str, shown: str) -> None:
    told.provider.get_tracer("any").start_span(name).end()

    assert [span.name for span in told.finished] == [shown]


@pytest.mark.parametrize("value", ["a b", "a\nb", "x" * 129, "", "ä", "'", "{a}", 1.5, True, ("a",)])
def test_a_value_is_a_code_or_a_number(told: Told, value: object) -> None:
    span = told.provider.get_tracer("any").start_span("run x")
    span.set_attribute(names.STEP, value)  # type: ignore[arg-type]  # as a library might
    span.end()

    assert dict(told.finished[0].attributes or {}) == ({names.STEP: True} if value is True else {})


def test_a_failure_is_told_by_its_category(told: Told) -> None:
    with pytest.raises(RetryableError), spans.current(spans.begun("run x", SpanKind.INTERNAL, {})):
        raise RetryableError(Category.RATE_LIMITED, CANARY)

    (left,) = told.finished
    assert dict(left.attributes or {}) == {"error.type": "rate_limited"}
    assert left.status.status_code is StatusCode.ERROR


def test_the_names_are_those_of_the_conventions() -> None:
    conventions = {
        value
        for module in (gen_ai_attributes, http_attributes, error_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }

    theirs = {name for name in names.ATTRIBUTES if not name.startswith(("agentjobs.", "temporal"))}
    assert len(theirs) == 12
    assert theirs <= conventions


class Outside(SpanExporter):
    """Takes spans, or does not."""

    takes = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As the test wants it."""
        return SpanExportResult.SUCCESS if self.takes else SpanExportResult.FAILURE


def test_a_collector_that_is_away_is_one_line_and_not_one_for_each_batch() -> None:
    outside = Outside()
    tracer = provider_of(SimpleSpanProcessor(Wall(outside))).get_tracer("any")

    with structlog.testing.capture_logs() as lines:
        for outside.takes in (False, False, False, True, True, False):
            tracer.start_span("run x").end()

    assert [line["event"] for line in lines] == ["spans_not_taken", "spans_taken_again", "spans_not_taken"]
    assert {line["log_level"] for line in lines} == {logging.getLevelName(logging.WARNING).lower(), "info"}
