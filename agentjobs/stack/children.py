"""A child process: how it is to be started and stopped, as data, and one that runs."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Self

import psutil

from agentjobs.stack.errors import ChildFailedError

FAILPOINTS = "AGENTJOBS_FAILPOINTS"
LAUNCHER = Path(__file__).with_name("launcher.py")
Probe = Callable[["Child"], Awaitable[bool]]


def _nothing() -> None:
    """Most children need no tidying before they start."""


@dataclass(frozen=True)
class Account:
    """The account a child runs as, when it is not ours."""

    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """Everything that makes one child different from another."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)  # holds secrets
    ready: Probe
    account: Account | None = None
    directory: Path | None = None
    before_start: Callable[[], None] = _nothing
    stop_signal: signal.Signals = signal.SIGTERM
    # What the kernel sends when the supervisor dies. Nobody is left then to press a child that dawdles.
    death_signal: signal.Signals = signal.SIGKILL
    grace_seconds: float = 10.0
    start_seconds: float = 60.0
    start_attempts: int = 3

    def after_a_crash(self) -> "ChildSpec":
        """The successor's: without failpoints, for a failpoint that has killed once must not kill again."""
        kept = {name: value for name, value in self.environment.items() if name != FAILPOINTS}
        return replace(self, environment=kept)


class Child:
    """One running process. It leads its own session, so a Ctrl-C at the terminal reaches only the supervisor."""

    def __init__(self, spec: ChildSpec, process: asyncio.subprocess.Process, log: Path, log_start: int) -> None:
        self.spec = spec
        self.log = log
        self._process = process
        self._log_start = log_start
        self._started = monotonic()
        self.created_at = _created_at(process.pid)

    @classmethod
    async def spawn(cls, spec: ChildSpec, logs: Path) -> Self:
        """Start the process; whether it gets anywhere is the probe's question."""
        spec.before_start()
        log, descriptor, log_start = _open_log(logs, spec.name)
        try:
            process = await asyncio.create_subprocess_exec(
                *_launch_command(spec),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env=dict(spec.environment),
                cwd=spec.directory,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        return cls(spec, process, log, log_start)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def age_seconds(self) -> float:
        return monotonic() - self._started

    async def wait(self) -> int:
        """The exit code, negative when a signal ended it."""
        return await self._process.wait()

    async def exited_within(self, seconds: float) -> bool:
        """Wait that long at most; wakes at once when it exits."""
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, with whatever it started in its process group."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Ask, wait for the grace, then insist."""
        if self.alive:
            self._process.send_signal(self.spec.stop_signal)
        if not await self.exited_within(self.spec.grace_seconds):
            self.kill()
            await self.wait()

    def output(self) -> str:
        """What it has written since it started."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def failed(self, what: str) -> ChildFailedError:
        """The error that quotes its last line."""
        lines = [line.strip() for line in self.output().splitlines() if line.strip()]
        return ChildFailedError(self.spec.name, what, lines[-1] if lines else "", self.log)


def _launch_command(spec: ChildSpec) -> list[str]:
    uid, gid = (str(spec.account.uid), str(spec.account.gid)) if spec.account else ("-", "-")
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER)]
    return [*launcher, str(int(spec.death_signal)), str(os.getpid()), uid, gid, *spec.argv]


def _open_log(logs: Path, name: str) -> tuple[Path, int, int]:
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = logs / f"{name}.log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return log, descriptor, os.fstat(descriptor).st_size


def _created_at(pid: int) -> float:
    # With the command line this tells our process from a later one that was given the same pid.
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0
