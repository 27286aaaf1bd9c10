"""A process's wall clock jumps when it is told to, and nothing else of its time does."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentjobs.stack.errors import StackError
from tests.chaos.storm.clocks import WallClock, compiled
from tests.chaos.storm.parts import APIS, RELAYS, Mix, Parts

HOUR = 3600
SOON = 10
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
TELLS = """
import sys, time
for _ in sys.stdin:
    time.sleep(0.01)
    print(time.time(), time.monotonic(), flush=True)
"""


@asynccontextmanager
async def _asked(clock: WallClock) -> AsyncIterator[Callable[[], Awaitable[tuple[float, float]]]]:
    """A process that goes by this clock: each call asks it for its wall clock and its monotonic one."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", TELLS),
        env={**os.environ, **clock.environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    asked, told = process.stdin, process.stdout
    assert asked is not None
    assert told is not None

    async def now() -> tuple[float, float]:
        asked.write(b"\n")
        wall, monotonic = (await told.readline()).split()
        return float(wall), float(monotonic)

    yield now
    asked.close()
    await process.wait()


@needs_compiler
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_only_the_wall_clock_of_a_process_jumps(tmp_path: Path, seconds: int) -> None:
    clock = WallClock(tmp_path / "clock", compiled(tmp_path))
    clock.jump(0)

    async with _asked(clock) as now:
        before = await now()
        clock.jump(seconds)
        is_told_before_it_asks = clock.was_told()
        after = await now()
        is_told = clock.was_told()
        clock.jump(0)
        right = await now()

    assert (is_told_before_it_asks, is_told) == (False, True)
    assert after[0] - before[0] == pytest.approx(seconds, abs=SOON)
    assert 0 <= after[1] - before[1] < SOON
    assert 0 <= right[0] - before[0] < SOON


def test_without_a_compiler_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StackError, match="apt-get install gcc"):
        Parts(tmp_path, Mix(clocks_jump=True))


@needs_compiler
def test_only_apis_and_relays_have_clocks_that_jump(tmp_path: Path) -> None:
    parts = Parts(tmp_path, Mix(clocks_jump=True))

    assert set(parts.clocks) == {*APIS, *RELAYS}
    assert Parts(tmp_path, Mix()).clocks == {}
