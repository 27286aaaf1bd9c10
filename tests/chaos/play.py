"""One run: jobs, a fault in the middle of them, quiescence, and the verdict."""

import asyncio
import time
from dataclasses import dataclass, field
from random import Random

from tests.chaos.checker import violations
from tests.chaos.collecting import Collector
from tests.chaos.evidence import Violation
from tests.chaos.faults import Fault
from tests.chaos.load import Load
from tests.chaos.rig import Fruitless, Rig, until

SETTLED_SECONDS = 1.0
"""After quiescence: what comes late comes now."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    boundary: str
    deed: str
    seed: str
    fired: str | None
    quiet_seconds: float | None
    """From the fault until every job was where it was to go."""

    jobs: int
    violations: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.fired is not None and not self.violations

    def __str__(self) -> str:
        quiet = "never quiet" if self.quiet_seconds is None else f"quiet after {self.quiet_seconds:.1f} s"
        found = "".join(f"\n    {violation}" for violation in self.violations)
        return (
            f"{self.boundary} {self.deed}: fired: {self.fired or 'NEVER'}; {self.jobs} jobs, {quiet}"
            f" (CHAOS_SEED={self.seed}){found}"
        )


async def play(rig: Rig, fault: Fault, seed: str) -> Outcome:
    """Play the fault out under load. All random choices follow from the seed and the fault's name."""
    random = Random(f"{seed}:{fault.name}:{fault.deed}")
    await rig.all_ready()
    rig.mark_logs()
    load = Load(rig, random, f"run{random.randrange(10**9)}")
    collector = await Collector.from_now(rig)
    await load.prepare()
    course = _Course()
    try:
        await fault.prepare(rig, random)
        await _under_load(rig, fault, load, course)
        await _until_quiet(collector, load, fault, course)
    finally:
        await fault.finish(rig)
        await load.close()
    await asyncio.sleep(SETTLED_SECONDS)
    evidence = await collector.evidence(load)
    found = violations(evidence.but(frozen=fault.freezes))
    return course.outcome(fault, seed, len(evidence.jobs), found)


@dataclass
class _Course:
    """What happened so far."""

    fired: str | None = None
    struck_at: float = 0.0
    quiet_at: float | None = None
    wrong: list[Violation] = field(default_factory=list)

    def outcome(self, fault: Fault, seed: str, jobs: int, found: list[Violation]) -> Outcome:
        quiet = None if self.quiet_at is None else max(self.quiet_at - self.struck_at, 0.0)
        told = tuple(str(violation) for violation in (*self.wrong, *found))
        return Outcome(fault.name, fault.deed, seed, self.fired, quiet, jobs, told)


async def _under_load(rig: Rig, fault: Fault, load: Load, course: _Course) -> None:
    """Returns when the fault has struck and each job has had what was to happen to it."""
    met = asyncio.Event()
    sent = [asyncio.create_task(load.run()), asyncio.create_task(load.feed(met))]
    try:
        course.fired = await fault.strike(rig, load)
    except Fruitless as fruitless:
        course.wrong.append(Violation("fault", fault.name, str(fruitless)))
    finally:
        met.set()
    course.struck_at = time.monotonic()
    await fault.relieve(rig)
    for ended in await asyncio.gather(*sent, return_exceptions=True):
        if isinstance(ended, BaseException):
            course.wrong.append(Violation("load", fault.name, repr(ended)))


async def _until_quiet(collector: Collector, load: Load, fault: Fault, course: _Course) -> None:
    async def look() -> bool:
        return await collector.quiet(load)

    try:
        await until(look, "quiescence", fault.patience_seconds)
        course.quiet_at = time.monotonic()
    except Fruitless as fruitless:
        course.wrong.append(Violation("I1", "the run", f"{fruitless}: {await collector.told()}"))
