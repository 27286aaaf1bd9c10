"""Tracing is off unless OpenTelemetry's own variables ask for it; and whoever takes no spans holds nobody up."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanKind

from agentjobs.settings import SettingsError
from agentjobs.temporal import tracing_interceptors
from agentjobs.tracing import exporting, spans
from agentjobs.tracing.switch import traced
from tests.ports import free_port
from tests.tracing.collector import collecting
from tests.tracing.told import Told

ON = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}

PROGRAM = """
import json, logging, os, sys, threading, time
from agentjobs.logs import configure_logging
from opentelemetry.trace import SpanKind
from agentjobs.tracing import spans
from agentjobs.tracing.switch import traced
configure_logging("INFO")
began = time.monotonic()
with traced(os.environ, "worker"):
    for _ in range(100):
        with spans.current(spans.begun("run x", SpanKind.INTERNAL, {})):
            pass
    told = time.monotonic() - began
    threads = [thread.name for thread in threading.enumerate()]
    time.sleep(float(sys.argv[1]))
    ending = time.monotonic()
sdk = "opentelemetry.sdk.trace" in sys.modules
print(json.dumps({"threads": threads, "told": told, "ended": time.monotonic() - ending, "sdk": sdk}))
"""


async def test_what_is_left_is_sent_at_the_end() -> None:
    async with collecting() as collector:
        later = {**collector.environment, "OTEL_BSP_SCHEDULE_DELAY": "60000"}

        said, lines = await asyncio.to_thread(ran, 0, **later)

    assert (lines, [one.service for one in collector.spans]) == ([], ["agentjobs-worker"] * 100)
    assert float(str(said["ended"])) < exporting.FLUSH_SECONDS


async def test_an_answer_without_an_end_is_not_read() -> None:
    async with collecting() as collector:
        collector.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nx"
        few = {**collector.environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10"}

        said, lines = await asyncio.to_thread(ran, 1, **few)

    assert (lines, len(collector.spans)) == ([], 100)
    assert float(str(said["ended"])) < exporting.FLUSH_SECONDS


def ran(seconds: float, **variables: str) -> tuple[dict[str, object], list[dict[str, object]]]:
    """What the program says of itself, and what it has logged."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    words = [sys.executable, "-c", PROGRAM, str(seconds)]
    done = subprocess.run(words, env=kept | variables, capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout), [json.loads(line) for line in done.stderr.splitlines()]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**ON, "OTEL_SDK_DISABLED": "True"},
        {**ON, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_it_is_off_unless_it_is_asked_for(variables: dict[str, str]) -> None:
    before = threading.active_count()

    with traced(variables, "worker"):
        assert not spans.is_on()
        assert tracing_interceptors() == []
        assert threading.active_count() == before


def test_switched_off_it_loads_no_sdk_and_starts_no_thread() -> None:
    said, lines = ran(0)

    assert (said["threads"], said["sdk"], lines) == (["MainThread"], False, [])


def test_a_collector_that_is_away_holds_nobody_up_and_is_one_line() -> None:
    away = f"http://127.0.0.1:{free_port()}"

    said, lines = ran(
        1.5,
        OTEL_EXPORTER_OTLP_ENDPOINT=away,
        OTEL_BSP_SCHEDULE_DELAY="50",
        OTEL_BSP_EXPORT_TIMEOUT="100",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )

    assert [line["event"] for line in lines] == ["spans_not_taken"]
    assert float(str(said["ended"])) < exporting.FLUSH_SECONDS + 1
    assert "OtelBatchSpanRecordProcessor" in str(said["threads"])


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_another_protocol_is_refused_at_the_start(variable: str) -> None:
    with (
        pytest.raises(SettingsError, match=f"{variable}: only http/protobuf"),
        traced({**ON, variable: "grpc"}, "api"),
    ):
        raise AssertionError("it has begun")


def test_the_end_waits_for_the_last_spans_no_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    stuck = threading.Event()
    monkeypatch.setattr(told.provider, "shutdown", stuck.wait)
    monkeypatch.setattr(exporting, "FLUSH_SECONDS", 0.05)
    began = time.monotonic()

    exporting.end(told.provider)

    assert 0.05 <= time.monotonic() - began < 2
    stuck.set()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "agentjobs-relay"),
        ({"OTEL_SERVICE_NAME": "theirs"}, "theirs"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=listed,deployment.environment.name=test"}, "listed"),
    ],
)
def test_the_service_has_the_name_that_is_given_or_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    resource: Resource = exporting.resource_of(variables, "relay")

    assert resource.attributes["service.name"] == name
    if "deployment" in str(variables):
        assert resource.attributes["deployment.environment.name"] == "test"


def test_a_switched_off_span_costs_next_to_nothing() -> None:
    assert not spans.is_on()
    began = time.perf_counter()
    for _ in range(1_000):
        with spans.current(spans.begun("run x", SpanKind.INTERNAL, {})):
            pass

    assert time.perf_counter() - began < 1  # 20 microseconds each on an idle machine
    assert trace.get_current_span() is trace.INVALID_SPAN
