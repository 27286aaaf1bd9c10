"""What stands in our logs: events in one form, and nothing that a user wrote, nor any secret."""

import asyncio
import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from agentjobs.logs import LONGEST_TEXT, configure_logging
from agentjobs.processes import EXIT_FAILED, started
from agentjobs.temporal import forwarded_logs

CANARY = "my secret request"


@pytest.mark.parametrize("name", ["httpx", "httpx2", "openai._base_client", "anthropic._base_client"])
def test_a_library_that_logs_requests_is_quiet_also_at_debug(name: str, caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logging("DEBUG")

        assert not logging.getLogger(name).isEnabledFor(logging.INFO)
        assert logging.getLogger("agentjobs").isEnabledFor(logging.DEBUG)
    finally:
        root.handlers = handlers
        root.setLevel(level)


def test_the_cores_log_has_no_fields(caplog: pytest.LogCaptureFixture) -> None:
    entry: Any = SimpleNamespace(
        level=logging.WARNING, target="core", message="Failing workflow task", fields={"failure": CANARY}, time=0.0
    )

    forwarded_logs()._on_logs([entry])

    assert "Failing workflow task" in caplog.text
    assert CANARY not in caplog.text


Event = dict[str, Any]


class Said:
    """What was logged so far, line by line."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def events(self) -> list[Event]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def only(self) -> Event:
        (event,) = self.events
        return event


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[Said]:
    """The process's log, set up as our processes do."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logging("INFO")
    yield Said(stream)
    logging.captureWarnings(capture=False)
    root.handlers = handlers
    root.setLevel(level)


def logger() -> Any:
    return structlog.get_logger("agentjobs.tests")


def test_an_event_has_its_name_level_and_time(said: Said) -> None:
    logger().warning("worker_lost", worker="w1", jobs=3)

    timestamp = said.only.pop("timestamp")
    assert timestamp.endswith("Z")
    assert {key: value for key, value in said.only.items() if key != "timestamp"} == {
        "event": "worker_lost",
        "level": "warning",
        "logger": "agentjobs.tests",
        "worker": "w1",
        "jobs": 3,
    }


def test_another_librarys_message_is_an_event_without_its_values(said: Said) -> None:
    logging.getLogger("uvicorn.error").warning("Invalid request of %s", CANARY, extra={"color_message": CANARY})
    logging.getLogger("asyncio").error(f"Future exception was never retrieved\nfuture: <Future {CANARY!r}>")
    logging.getLogger("anything").error("%s", CANARY)

    assert [event["event"] for event in said.events] == [
        "Invalid request of %s",
        "Future exception was never retrieved",
        "anything",
    ]
    assert all({"event", "level", "timestamp", "logger"} <= event.keys() for event in said.events)
    assert CANARY not in said.text


def test_the_sdks_message_says_which_workflow_it_is_about(said: Said) -> None:
    logging.getLogger("temporalio.worker").warning("Failed activation on %s, %s: %s", "agent-job-1", 7, CANARY)

    assert said.only["about"] == ["agent-job-1", 7]
    assert CANARY not in said.text


def test_a_failure_that_the_sdk_leaves_unread_is_no_news_and_anybody_elses_is(said: Said) -> None:
    for name in ("temporalio.worker._workflow_instance", "asyncio"):
        logging.getLogger(name).error("Future exception was never retrieved\nfuture: <Future>")
    logging.getLogger("temporalio.worker._workflow_instance").error("Failed activation")

    assert [(event["event"], event["logger"]) for event in said.events] == [
        ("Future exception was never retrieved", "asyncio"),
        ("Failed activation", "temporalio.worker._workflow_instance"),
    ]


def test_the_cores_record_is_not_told_twice(said: Said) -> None:
    logging.getLogger("temporalio-sdk_core").warning("Failing", extra={"temporal_log": object()})

    assert "temporal_log" not in said.only


def test_an_exception_is_told_by_its_type(said: Said) -> None:
    def fail() -> None:
        try:
            int(CANARY)
        except ValueError as inner:
            raise RuntimeError(CANARY) from inner

    try:
        fail()
    except RuntimeError:
        logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True)
        logger().exception("unforeseen_error")

    assert [event["error_type"] for event in said.events] == ["RuntimeError", "RuntimeError"]
    assert "Traceback" not in said.text
    assert CANARY not in said.text


@pytest.mark.parametrize(
    "secret",
    [
        "ajk_abc-DEF_123",
        "sk-proj-0123456789abcdef",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "Bearer 0123456789.abcdef",
        "postgresql://agentjobs:pass%20word@db/agentjobs",
        "ghp_0123456789abcdefABCDEF",
    ],
)
def test_a_secret_is_taken_out_wherever_it_stands(said: Said, secret: str) -> None:
    words = secret.replace("Bearer ", "").replace("postgresql://agentjobs:", "").replace("@db/agentjobs", "")

    logger().error("odd", error=f"refused: {secret}", nested={"given": [secret, {"key": secret}], secret: 1})
    logging.getLogger("temporalio.client").error("Refused %s", secret, extra={"header": f"with {secret}"})

    assert words not in said.text
    assert said.events[0]["error"].count("[redacted]") == 1
    assert said.events[0]["event"] == "odd"


@pytest.mark.parametrize("before", range(LONGEST_TEXT - 10, LONGEST_TEXT))
def test_a_secret_is_taken_out_before_the_text_is_cut(said: Said, before: int) -> None:
    logger().error("odd", error=" " * before + "sk-0123456789abcdefghijklmnop")

    assert "sk-" not in said.text
    assert len(said.only["error"]) <= LONGEST_TEXT + len("...")


def test_line_breaks_and_colours_stay_within_their_value(said: Said) -> None:
    logger().error("odd", given='\n{"level":"critical","event":"forged"}\n\x1b[31m')

    assert said.only["event"] == "odd"
    assert "\x1b" not in said.text


def test_a_warning_is_an_event_too(said: Said) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn(CANARY, stacklevel=1)

    assert (said.only["event"], said.only["logger"]) == ("py.warnings", "py.warnings")


def test_a_crash_is_one_event_without_the_exceptions_text(
    said: Said, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTJOBS_DATABASE_URL", "postgresql://x:y@127.0.0.1/z")

    async def part() -> None:
        raise ValueError(CANARY)

    async def crash(_: object) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(part())

    code = started("api", crash)
    told = capsys.readouterr().err

    crashed = json.loads(told)
    assert code == EXIT_FAILED
    assert crashed["event"] == "crashed"
    assert [error.split()[0] for error in crashed["errors"]] == ["ValueError"]
    assert CANARY not in told
