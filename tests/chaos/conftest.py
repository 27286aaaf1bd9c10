"""The seed, one warm stack for all runs, and what the runs came to."""

import os
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import pytest

from tests.chaos.play import Outcome
from tests.chaos.report import table
from tests.chaos.rig import Rig, running_rig

SEED = os.environ.get("CHAOS_SEED") or secrets.token_hex(4)
Tell: TypeAlias = Callable[[Outcome], None]
_outcomes: list[Outcome] = []


@pytest.fixture(scope="session")
def seed() -> str:
    """From which all random choices follow; give it as CHAOS_SEED to have the same again."""
    return SEED


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Tell:
    """Shows an outcome at once, for a session may take half an hour, and keeps it for the table."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def told(outcome: Outcome) -> None:
        _outcomes.append(outcome)
        if terminal is None:  # one of several processes: a broken promise is told by its test
            return
        with capture.global_and_fixture_disabled():
            terminal.write_line(f"\n{outcome}")

    return told


@pytest.fixture(scope="package")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """A stack that outlives its faults: each run begins when all of it is up."""
    async with running_rig(tmp_path_factory.mktemp("chaos")) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, also when everything passed."""
    if _outcomes:
        terminalreporter.section(f"chaos, CHAOS_SEED={SEED}")
        terminalreporter.write(table(_outcomes))
