"""Where spans stand: the header, and ids that follow from a job's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind
from temporalio.api.common.v1 import Payload

from agentjobs.tracing import contexts, spans
from agentjobs.tracing.runs import Run
from agentjobs.tracing.temporal import HEADER, run_in, with_run
from tests.tracing.told import Told

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
RUN = Run(told_by=f"00-{TRACE}-{SPAN}-01", job_id="j", tenant="t", agent="a", generation=0)
IDS = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")


@given(IDS, IDS, st.booleans())
def test_what_is_written_is_read_again(half: str, span: str, sampled: bool) -> None:
    place = contexts.place(half + half, span, sampled=sampled)

    assert contexts.read(contexts.written(place)) == place


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)])
def test_only_the_sampled_flag_is_understood(flags: str, sampled: bool) -> None:
    place = contexts.read(f"00-{TRACE}-{SPAN}-{flags}")

    assert place is not None
    assert contexts.written(place) == f"00-{TRACE}-{SPAN}-{'01' if sampled else '00'}"


def test_a_derived_id_is_the_same_everywhere_and_of_no_other_span() -> None:
    assert contexts.derived(TRACE, "run", "job", 1) == contexts.derived(TRACE, "run", "job", 1)
    assert len({contexts.derived(TRACE, "run", "job", number) for number in range(1_000)}) == 1_000
    assert contexts.derived(TRACE, "run", "job", 1) != contexts.derived(TRACE[::-1], "run", "job", 1)


def test_a_span_without_a_parent_begins_the_trace_that_is_given(told: Told) -> None:
    spans.begun("run x", SpanKind.INTERNAL, {}, parent=None, trace_id=TRACE, span_id=SPAN).end()
    spans.begun("run y", SpanKind.INTERNAL, {}, parent=None).end()

    first, second = told.spans
    assert (first.trace_id, first.span_id, first.parent_id) == (TRACE, SPAN, "")
    assert second.trace_id != TRACE


def test_outside_of_any_trace_nothing_is_passed_on(told: Told) -> None:
    assert contexts.passed_on() == {}

    with spans.current(spans.begun("run x", SpanKind.INTERNAL, {}, trace_id=TRACE, span_id=SPAN)):
        assert contexts.passed_on() == {"traceparent": f"00-{TRACE}-{SPAN}-01"}

    assert len(told.spans) == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", b"[]", b'{"told_by": "x"}', RUN.model_dump_json().replace(TRACE, "0" * 32).encode()],
)
def test_a_run_that_cannot_be_read_is_none(data: bytes) -> None:
    assert run_in({HEADER: Payload(data=data)}) is None


def test_what_a_later_release_says_of_a_run_is_passed_over() -> None:
    later = RUN.model_dump_json().replace("{", '{"more": 1, ', 1)

    assert run_in({HEADER: Payload(data=later.encode())}) == RUN
    assert run_in(with_run({}, RUN)) == RUN
    assert run_in({}) is None
