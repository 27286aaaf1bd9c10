"""A program that is told to stop takes down what it has, and leaves no directory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.storm.programs import BROKEN_OFF, SIGNALS, home_for
from tests.e2e.conftest import CHECKOUT

IGNORES = """
import signal
signal.signal({number}, signal.SIG_IGN)
"""
WORKS = """
import asyncio, sys
from tests.chaos.storm.programs import home_for, run, tell

async def work():
    with home_for("try"):
        try:
            tell("began")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            tell("tidied up")

sys.exit(run(work()))
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_the_shell_has_ignored_ends_a_program_in_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", IGNORES.format(number=int(number)) + WORKS]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"began\n"

        process.send_signal(number)

        told = process.stdout.read().decode().splitlines()

    assert process.returncode == BROKEN_OFF
    assert told[-1] == "tidied up"
    assert list(tmp_path.iterdir()) == []


def test_the_home_of_a_program_that_ends_by_itself_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    with home_for("try") as home:
        (home / "log").touch()

    assert (home / "log").exists()
