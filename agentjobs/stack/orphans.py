"""Children that outlived their supervisor: noted while they run, stopped by the next start in the same home.

On Linux the kernel ends them with the supervisor (see launcher.py); this is for the moments before that is done
and for systems without it.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
import structlog
from pydantic import BaseModel, ConfigDict, RootModel

from agentjobs.stack.children import Child
from agentjobs.stack.private_file import write_private

# PostgreSQL may write a last checkpoint; the others were sent SIGKILL.
PATIENCE_SECONDS = 20.0
# The kernel counts starts in hundredths of a second, and the clock may be set in between.
SAME_START_SECONDS = 2.0


class ChildRecord(BaseModel):
    """One process, with what tells it from a later one that was given the same pid."""

    model_config = ConfigDict(frozen=True)

    pid: int
    created_at: float
    argv: tuple[str, ...]
    death_signal: int

    def process(self) -> psutil.Process | None:
        """The process itself, if it is still that one."""
        try:
            process = psutil.Process(self.pid)
            same_start = abs(process.create_time() - self.created_at) < SAME_START_SECONDS
            same = same_start and tuple(process.cmdline()) == self.argv
        except psutil.Error:
            return None
        return process if same else None


ChildRecords = RootModel[list[ChildRecord]]


def note_children(file: Path, children: Iterable[Child]) -> None:
    """Write down who runs now."""
    records = [
        ChildRecord(
            pid=child.pid,
            created_at=child.created_at,
            argv=child.spec.argv,
            death_signal=int(child.spec.death_signal),
        )
        for child in children
    ]
    write_private(file, ChildRecords(records).model_dump_json())


async def stop_orphans(file: Path) -> None:
    """End what the stack before left running, and forget it."""
    orphans = [process for record in _read(file) if (process := _signalled(record)) is not None]
    if orphans:
        _, left = await asyncio.to_thread(psutil.wait_procs, orphans, PATIENCE_SECONDS)
        for process in left:
            process.kill()
        structlog.get_logger().info("orphans_stopped", pids=[process.pid for process in orphans])
    _forget(file)


def _forget(file: Path) -> None:
    file.unlink(missing_ok=True)


def _read(file: Path) -> list[ChildRecord]:
    if not file.exists():
        return []
    return ChildRecords.model_validate_json(file.read_text(encoding="utf-8")).root


def _signalled(record: ChildRecord) -> psutil.Process | None:
    process = record.process()
    if process is not None:
        with suppress(psutil.NoSuchProcess):  # it was on its way out already
            process.send_signal(record.death_signal)
    return process
