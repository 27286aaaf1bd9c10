"""What other libraries write into our logs: nothing that a user wrote."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from agentjobs.logs import configure_logging
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
