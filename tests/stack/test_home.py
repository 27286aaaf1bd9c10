"""The home: one stack at a time, secrets for their owner only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentjobs.stack.errors import HomeInUseError
from agentjobs.stack.home import Home
from agentjobs.stack.info import DevKeys, StackInfo
from tests.stack.dummies import gone

INFO = StackInfo(
    api="http://127.0.0.1:1",
    console="http://127.0.0.1:1/console/",
    temporal="127.0.0.1:2",
    temporal_ui="http://127.0.0.1:3",
    database="postgresql://postgres:secret@127.0.0.1:4/agentjobs",
    api_key="submit",
    admin_key="admin",
    pids={"api": 5},
    metrics={"api": "http://127.0.0.1:1/metrics"},
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_second_stack_is_told_who_holds_the_home(tmp_path: Path) -> None:
    with (
        Home(tmp_path).held(),
        pytest.raises(HomeInUseError, match=rf"in use by another stack \(pid {os.getpid()}\)"),
        Home(tmp_path).held(),
    ):
        pass


def test_the_home_is_free_again_when_its_holder_was_killed(tmp_path: Path) -> None:
    code = (
        "import pathlib, os, signal; from agentjobs.stack.home import Home\n"
        f"with Home(pathlib.Path({str(tmp_path)!r})).held(): os.kill(os.getpid(), signal.SIGKILL)"
    )

    holder = subprocess.run([sys.executable, "-c", code], check=False)

    assert holder.returncode == -9
    with Home(tmp_path).held():
        assert not gone(int((tmp_path / "lock").read_text()))


def test_stack_json_has_the_documented_shape_and_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.held():
        home.publish(INFO)

    told = json.loads((tmp_path / "stack.json").read_text())
    assert list(told) == [
        *("api", "console", "temporal", "temporal_ui", "database", "api_key", "admin_key", "pids", "metrics"),
    ]
    assert mode(tmp_path / "stack.json") == 0o600


def test_stack_json_of_a_crashed_stack_is_gone_at_the_next_start(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.held():
        home.publish(INFO)

    with home.held():
        assert not (tmp_path / "stack.json").exists()


def test_keys_outlive_the_stack(tmp_path: Path) -> None:
    keys = DevKeys(api_key="a", admin_key="b")
    with Home(tmp_path).held():
        assert Home(tmp_path).keys() is None
        Home(tmp_path).keep_keys(keys)

    assert Home(tmp_path).keys() == keys
    assert mode(tmp_path / "keys.json") == 0o600


def test_others_cannot_list_a_new_home(tmp_path: Path) -> None:
    with Home(tmp_path / "new").held():
        assert mode(tmp_path / "new") & 0o066 == 0
        assert mode(tmp_path / "new" / "logs") == 0o700


def test_the_mode_of_a_directory_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("...")
    tmp_path.chmod(0o755)

    with Home(tmp_path).held():
        assert mode(tmp_path) == 0o755
