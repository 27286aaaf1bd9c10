"""What is done to a stack, and how one knows that it was done."""

import asyncio
import os
import signal
from dataclasses import dataclass
from random import Random

from agentjobs.failpoints import Deed
from tests.chaos.load import Load
from tests.chaos.rig import VICTIM, WORKERS, Fruitless, Rig, child_of, until

FIRE_SECONDS = 60.0
LOCKS_FREED_SECONDS = 17.0
"""After the database has ended the transaction of a process that sits in it (15 s)."""

RESTED_SECONDS = 1.0


class Fault:
    """One fault. `strike` returns the evidence that it happened, and raises Fruitless when it did not."""

    name: str
    deed: str
    patience_seconds: float = 90.0
    """From the fault to quiescence."""

    freezes: bool = False
    """Whether a process is stopped and wakes up again."""

    async def prepare(self, rig: Rig, random: Random) -> None:
        """Before the jobs."""

    async def strike(self, rig: Rig, load: Load) -> str:
        """While jobs are under way."""
        raise NotImplementedError

    async def relieve(self, rig: Rig) -> None:
        """Before quiescence is waited for: what nobody would leave so."""

    async def finish(self, rig: Rig) -> None:
        """After it: what was frozen wakes up."""


@dataclass
class AtFailpoint(Fault):
    """A failpoint in the one process that reaches it; another worker is there for the rest."""

    failpoint: str
    does: Deed

    def __post_init__(self) -> None:
        self.name, self.deed = self.failpoint, self.does.value
        self._child = child_of(self.failpoint)
        self._frozen: int | None = None
        self.freezes = self.does is Deed.HANG
        self.patience_seconds = 180.0 if self.freezes else 90.0

    async def prepare(self, rig: Rig, random: Random) -> None:
        # A late N may never come in a process that is met rarely.
        self._setting = f"{self.failpoint}={self.does}@{random.randint(1, 3)}"
        await rig.arm(self._child, self._setting)

    async def strike(self, rig: Rig, load: Load) -> str:
        async def look() -> bool:
            return rig.fired(self.failpoint)

        await until(look, f"{self._setting} in {self._child}", FIRE_SECONDS)
        if self.does is Deed.HANG:
            # One call hangs, heartbeats and everything else would go on: the process as a whole hangs.
            self._frozen = rig.freeze(self._child)
        return f"{self._setting} in {self._child}"

    async def relieve(self, rig: Rig) -> None:
        if self._frozen is not None and self._child != VICTIM:
            # There is one of it: the locks go without it, and then somebody kills it.
            await asyncio.sleep(LOCKS_FREED_SECONDS)
            await self._end(rig, self._frozen)

    async def finish(self, rig: Rig) -> None:
        if self._frozen is not None and self._child == VICTIM:
            await self._end(rig, self._frozen)
        elif self.does is Deed.RAISE:
            await rig.arm(self._child, "")

    async def _end(self, rig: Rig, frozen: int) -> None:
        rig.thaw(frozen)
        await asyncio.sleep(RESTED_SECONDS)
        await rig.stack.kill(self._child)
        await rig.stack.until_ready(self._child)
        self._frozen = None


@dataclass
class Killed(Fault):
    """kill -9 of these children at the same moment."""

    children: tuple[str, ...]

    def __post_init__(self) -> None:
        self.name, self.deed = " ".join(self.children), "kill -9"

    async def prepare(self, rig: Rig, random: Random) -> None:
        self._moment = random.uniform(0.1, 0.8)

    async def strike(self, rig: Rig, load: Load) -> str:
        await asyncio.sleep(self._moment)
        before = {child: rig.pid(child) for child in self.children}
        for child in self.children:
            rig.stack._supervisor.keeper(child).kill()

        async def look() -> bool:
            return all(rig.stack.info.pids.get(child) not in (None, pid) for child, pid in before.items())

        await until(look, f"successors of {self.name}", FIRE_SECONDS)
        return f"after {self._moment:.2f} s: " + ", ".join(f"{child} {before[child]}" for child in self.children)

    async def finish(self, rig: Rig) -> None:
        await rig.all_ready()


@dataclass
class Frozen(Fault):
    """SIGSTOP of a worker in the middle of activities, until the other has done its work; then SIGCONT."""

    def __post_init__(self) -> None:
        self.name, self.deed = VICTIM, "SIGSTOP, SIGCONT"
        self.patience_seconds, self.freezes = 180.0, True

    async def strike(self, rig: Rig, load: Load) -> str:
        for _ in range(200):
            await asyncio.sleep(load.random.uniform(0.01, 0.1))
            self._pid = rig.freeze(VICTIM)
            await asyncio.sleep(0.05)  # what it had sent is in the ledger by then
            held = await self._held(rig)
            if held:
                return f"{held} attempts frozen in pid {self._pid}"
            rig.thaw(self._pid)
        raise Fruitless(f"{VICTIM} was never met with an attempt in hand")

    async def finish(self, rig: Rig) -> None:
        rig.thaw(self._pid)
        await asyncio.sleep(5 * RESTED_SECONDS)

    async def _held(self, rig: Rig) -> int:
        count: int = await rig.value(
            "SELECT count(*) FROM attempts JOIN workers ON workers.id = attempts.worker"
            " WHERE outcome = 'running' AND split_part(workers.identity, ':', 2) = $1",
            str(self._pid),
        )
        return count


@dataclass
class PostgresRestarted(Fault):
    """An immediate shutdown: sessions cut off, crash recovery at the start."""

    def __post_init__(self) -> None:
        self.name, self.deed = "postgres", "immediate restart"

    async def prepare(self, rig: Rig, random: Random) -> None:
        self._moment = random.uniform(0.1, 0.8)

    async def strike(self, rig: Rig, load: Load) -> str:
        await asyncio.sleep(self._moment)
        os.kill(rig.pid("postgres"), signal.SIGQUIT)

        async def look() -> bool:
            return "immediate shutdown request" in rig.logged("postgres")

        await until(look, "the immediate shutdown", FIRE_SECONDS)
        return f"after {self._moment:.2f} s: immediate shutdown request"

    async def finish(self, rig: Rig) -> None:
        await rig.all_ready()


@dataclass
class TemporalAway(Fault):
    """Temporal is stopped before the jobs are submitted, and comes back after."""

    seconds: float = 5.0

    def __post_init__(self) -> None:
        self.name, self.deed = "temporal", f"away {self.seconds:g} s"

    async def prepare(self, rig: Rig, random: Random) -> None:
        await rig.stack.stop_child("temporal")

    async def strike(self, rig: Rig, load: Load) -> str:
        await asyncio.sleep(self.seconds)
        accepted = len(load.expected)
        await rig.stack.start_child("temporal")
        if not accepted:
            raise Fruitless("no job was accepted while Temporal was away")
        return f"{accepted} jobs accepted without it"


PROCESS_FAULTS: tuple[Fault, ...] = (
    Killed(WORKERS),
    Killed(("relay",)),
    Killed(("api",)),
    Killed(("postgres",)),
    Killed(("temporal",)),
    PostgresRestarted(),
    TemporalAway(),
    Frozen(),
)
