"""Keeps one child running: starts it, waits until it is ready, starts it again whenever it dies."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from agentjobs.stack.children import Child, ChildSpec

# Short enough that readiness costs nobody time, long enough not to keep a core busy with asking.
PROBE_SECONDS = 0.05
# The first restart is at once, for a crash is mostly a single event; a child that dies again and again waits
# up to ten seconds, so that it neither fills the log nor eats the machine.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
# A child that lived this long has recovered from whatever it died of before.
RECOVERED_SECONDS = 60.0


class Backoff:
    """How long to wait before the next start."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE_SECONDS

    def after(self, lived_seconds: float) -> float:
        """The pause after a child that lived that long; each is twice the one before."""
        if lived_seconds >= RECOVERED_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        return pause


async def start(spec: ChildSpec, logs: Path, seen: Callable[[Child], None] = lambda _: None) -> Child:
    """A ready child, or ChildFailedError and no process. `seen` gets each process as soon as it exists."""
    spawned: list[Child] = []

    def note(child: Child) -> None:
        spawned.append(child)
        seen(child)

    try:
        async with asyncio.timeout(spec.start_seconds):
            return await _first_to_get_ready(spec, logs, note)
    except TimeoutError:
        raise spawned[-1].failed(f"was not ready after {spec.start_seconds:g} s") from None


async def _first_to_get_ready(spec: ChildSpec, logs: Path, seen: Callable[[Child], None]) -> Child:
    backoff = Backoff()
    for attempt in range(1, spec.start_attempts + 1):
        child = await _spawn_until_ready(spec, logs, seen)
        if child.alive:
            return child
        if attempt < spec.start_attempts:
            await asyncio.sleep(backoff.after(child.age_seconds))
    raise child.failed(f"exited {spec.start_attempts} times at its start")


async def _spawn_until_ready(spec: ChildSpec, logs: Path, seen: Callable[[Child], None]) -> Child:
    child = await Child.spawn(spec, logs)
    seen(child)
    try:
        while child.alive and not await spec.ready(child):
            await child.exited_within(PROBE_SECONDS)
    except BaseException:  # cancelled or out of time: what we started must not outlive that
        await child.stop()
        raise
    return child


class Keeper:
    """One child, kept alive until it is told to stop."""

    def __init__(self, spec: ChildSpec, logs: Path, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.child: Child | None = None
        self.ready = asyncio.Event()
        self._logs = logs
        self._changed = changed
        self._watch: asyncio.Task[None] | None = None
        self._log = structlog.get_logger().bind(child=spec.name)

    async def begin(self) -> None:
        """Start it for the first time, or again after `end`. Raises ChildFailedError when it does not come up."""
        await start(self.spec, self._logs, self._seen)
        self.ready.set()
        self._log.info("child_ready")
        self._watch = asyncio.create_task(self._keep())

    async def end(self) -> None:
        """Stop it and leave it stopped."""
        await self.let_go()
        if self.child is not None:
            await self.child.stop()
            self._log.info("child_stopped")
        self.child = None
        self.ready.clear()
        self._changed()

    async def let_go(self) -> None:
        """From now on an exit is not followed by a start."""
        if self._watch is None:
            return
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch
        self._watch = None

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        if self.child is not None:
            self.child.kill()

    async def kill_and_notice(self) -> None:
        """Crash it, and return when the supervisor knows: `ready` then tells when its successor is up."""
        child = self.child
        if child is None:
            return
        child.kill()
        await child.wait()
        self.ready.clear()

    def _seen(self, child: Child) -> None:
        self.child = child
        self._log.info("child_started", pid=child.pid)
        self._changed()

    async def _keep(self) -> None:
        backoff = Backoff()
        while self.child is not None:
            code = await self.child.wait()
            self.ready.clear()
            pause = backoff.after(self.child.age_seconds)
            self._log.warning("child_exited", pid=self.child.pid, code=code, restart_seconds=pause)
            await asyncio.sleep(pause)
            self.spec = self.spec.after_a_crash()
            await self._again()

    async def _again(self) -> None:
        try:
            async with asyncio.timeout(self.spec.start_seconds):
                child = await _spawn_until_ready(self.spec, self._logs, self._seen)
        except (
            Exception
        ) as error:  # whatever it was (no memory, a full disk, time is up): all we can do is try again
            self._log.warning("child_not_ready", error=repr(error))
            return
        if child.alive:
            self.ready.set()
            self._log.info("child_ready")
