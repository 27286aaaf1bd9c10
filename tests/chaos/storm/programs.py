"""How the programs of this directory run, and how they end when they are told to."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
BROKEN_OFF: Final = 130


def run(work: Coroutine[Any, Any, int]) -> int:
    """Its exit code. SIGINT or SIGTERM cancels it, also where a shell has them ignored; a second one kills."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_signalled(work))


@contextmanager
def home_for(program: str) -> Iterator[Path]:
    """A directory that stays, with the logs in it; but not when the program is broken off."""
    home = Path(tempfile.mkdtemp(prefix=f"agentjobs-{program}-"))
    try:
        yield home
    except asyncio.CancelledError:
        shutil.rmtree(home)
        raise


def tell(text: str) -> None:
    """A line, at once: a storm takes its time."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def _until_signalled(work: Coroutine[Any, Any, int]) -> int:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        tell("broken off: everything is taken down")
        task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except asyncio.CancelledError:
        return BROKEN_OFF
