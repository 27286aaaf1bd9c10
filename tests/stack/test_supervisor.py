"""All children of a stack: what one failure does to the others, and that stopping leaves nothing."""

from pathlib import Path

import pytest

from agentjobs.stack.errors import ChildFailedError, StackError
from agentjobs.stack.supervisor import Supervisor
from tests.stack.dummies import STUBBORN, gone, script


def note_end(file: Path, name: str) -> str:
    return f"""
import signal, sys, time
def end(*_):
    with open({str(file)!r}, "a") as ends: ends.write("{name} ")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(600)
"""


async def test_children_are_stopped_in_reverse(tmp_path: Path) -> None:
    ends = tmp_path / "ends"
    supervisor = Supervisor(tmp_path, lambda: None)
    for name in ("postgres", "api", "worker"):
        await supervisor.start([script(name, note_end(ends, name))])

    await supervisor.stop()

    assert ends.read_text() == "worker api postgres "


async def test_stopping_leaves_no_process(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, lambda: None)
    await supervisor.start([script("api"), script("relay")])
    await supervisor.start([script("worker-1", STUBBORN, grace_seconds=0.2)])
    pids = supervisor.pids

    await supervisor.stop()

    assert list(pids) == ["api", "relay", "worker-1"]
    assert all(gone(pid) for pid in pids.values())
    assert supervisor.pids == {}


async def test_one_failed_start_stops_the_rest_of_its_stage_too(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, lambda: None)

    with pytest.raises(ChildFailedError, match="relay exited 3 times at its start: no database"):
        await supervisor.start([script("api"), script("relay", "raise SystemExit('no database')")])

    pids = supervisor.pids
    await supervisor.stop()
    assert all(gone(pid) for pid in pids.values())


async def test_an_unknown_child_is_told_with_those_there_are(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, lambda: None)
    await supervisor.start([script("api")])

    with pytest.raises(StackError, match="no child is called wroker: there are api"):
        supervisor.keeper("wroker")

    await supervisor.stop()
