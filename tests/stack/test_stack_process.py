"""The supervisor as the user meets it: signals, crashes, clashes; and afterwards nothing is there."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import psutil
import pytest

from agentjobs.stack.environment import CHECKOUT
from agentjobs.stack.home import Home
from agentjobs.stack.info import StackInfo
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import is_free
from tests.stack.conftest import options_for
from tests.stack.dummies import eventually, gone

Launched = list[asyncio.subprocess.Process]


@pytest.fixture
async def launched() -> AsyncIterator[Launched]:
    processes: Launched = []
    yield processes
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def launch(options: StackOptions, launched: Launched) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stack.stack_process", options.model_dump_json()),
        cwd=CHECKOUT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    launched.append(process)
    return process


async def ready(process: asyncio.subprocess.Process, home: Path) -> StackInfo:
    file = home / "stack.json"
    await eventually(lambda: file.exists() or process.returncode is not None)
    return StackInfo.model_validate_json(file.read_text())


def family(process: asyncio.subprocess.Process) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


async def nothing_left(options: StackOptions, pids: list[int]) -> None:
    await eventually(lambda: all(gone(pid) for pid in pids))
    assert all(is_free(port) for port in options.ports.values())
    with Home(options.home).held():
        pass


async def test_a_signal_stops_everything_and_exits_zero(options: StackOptions, launched: Launched) -> None:
    process = await launch(options, launched)
    info = await ready(process, options.home)
    pids = family(process)

    process.send_signal(SIGINT)

    assert await process.wait() == 0
    assert set(info.pids.values()) <= set(pids)
    assert not (options.home / "stack.json").exists()
    await nothing_left(options, pids)


async def test_a_signal_during_the_start_stops_what_has_started(options: StackOptions, launched: Launched) -> None:
    process = await launch(options, launched)
    await eventually((options.home / "logs" / "temporal.log").exists)
    pids = family(process)

    process.send_signal(SIGTERM)

    assert await process.wait() == 0
    await nothing_left(options, pids)


async def test_kill_dash_nine_of_the_supervisor_leaves_no_child_and_the_home_starts_again(
    options: StackOptions, launched: Launched
) -> None:
    process = await launch(options, launched)
    before = await ready(process, options.home)
    pids = family(process)

    process.send_signal(SIGKILL)
    await process.wait()
    await nothing_left(options, pids)

    again = await launch(options, launched)
    after = await ready(again, options.home)
    assert (after.api_key, after.database) == (before.api_key, before.database)
    again.send_signal(SIGTERM)
    assert await again.wait() == 0


async def test_a_second_stack_in_the_home_is_refused_with_one_line(
    options: StackOptions, launched: Launched
) -> None:
    first = await launch(options, launched)
    await eventually((options.home / "lock").exists)
    await eventually(lambda: (options.home / "lock").read_text() == str(first.pid))

    second = await launch(options_for(options.home), launched)
    output, _ = await second.communicate()

    assert second.returncode == 1
    assert f"in use by another stack (pid {first.pid})" in output.decode()
    first.send_signal(SIGTERM)
    assert await first.wait() == 0


async def test_ctrl_c_twice_does_not_wait(options: StackOptions, launched: Launched) -> None:
    process = await launch(options, launched)
    info = await ready(process, options.home)
    pids = family(process)
    psutil.Process(info.pids["relay"]).suspend()  # it would use up its whole grace

    process.send_signal(SIGINT)
    await asyncio.sleep(0.1)  # two signals at the same moment are one
    process.send_signal(SIGINT)

    async with asyncio.timeout(30):  # half of its grace
        assert await process.wait() == 0
    await nothing_left(options, pids)
