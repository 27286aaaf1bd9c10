"""One storm: load and faults together, quiescence, and the verdict over everything that is known."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import asyncpg

from agentjobs.domain.states import JobState
from tests.chaos.checker import ledger_and_temporal_agree, violations
from tests.chaos.evidence import Evidence, Job, Violation
from tests.chaos.rig import Fruitless, until
from tests.chaos.storm.courses import COURSES
from tests.chaos.storm.deeds import Done, do_all
from tests.chaos.storm.figures import Figures, figures_of
from tests.chaos.storm.gathering import Gatherer
from tests.chaos.storm.redriver import OPEN_LETTERS, Redriver
from tests.chaos.storm.schedule import Nemesis, planned
from tests.chaos.storm.site import Site
from tests.chaos.storm.tenants import LIMITED, Keys
from tests.chaos.storm.traffic import Traffic
from tests.chaos.storm.vitals import Vitals
from tests.chaos.witnesses import Witnesses

FOLLOWERS_SECONDS = 60.0
LATE_SECONDS = 2.0
"""After quiescence: what comes late comes now."""

_UNDER_WAY = """
SELECT (SELECT count(*) FROM jobs WHERE state IN ('pending', 'running', 'retry_wait', 'waiting_approval'))
     + (SELECT count(*) FROM outbox)
     + (SELECT count(*) FROM dead_letters WHERE alerted_at IS NULL OR state LIKE '%_requested')
     + (SELECT count(*) FROM alert_deliveries WHERE state = 'waiting')"""


@dataclass(frozen=True)
class Storm:
    """What is asked for."""

    seed: str
    seconds: float
    jobs: int
    nemeses: Collection[Nemesis]
    patience_seconds: float | None = None
    """From the last fault to quiescence; unless said far more than is expected, also where jobs arrived faster
    than two cores carry them out. The verdict says how long it took.
    """

    @property
    def patience(self) -> float:
        """In seconds."""
        return 420.0 + self.jobs / 4 if self.patience_seconds is None else self.patience_seconds


@dataclass
class Verdict:
    """What became of it."""

    storm: Storm
    figures: Figures
    done: Done
    sent: Counter[str]
    redriven: Counter[str]
    violations: list[Violation]
    wrong: list[str] = field(default_factory=list)
    quiet_seconds: float | None = None
    vitals: str = ""

    @property
    def passed(self) -> bool:
        """Everything held, and every kind of fault did happen."""
        return not (self.violations or self.wrong or self.never_fired) and self.quiet_seconds is not None

    @property
    def never_fired(self) -> list[Nemesis]:
        """Kinds that were asked for and had no effect."""
        return [nemesis for nemesis in self.storm.nemeses if not self.done.fired[nemesis]]


Ordeal = Callable[[Site, Done], Awaitable[None]]
"""What the site goes through while jobs arrive."""


async def weather(site: Site, keys: Keys, storm: Storm, ordeal: Ordeal | None = None) -> Verdict:
    """Play it: the storm's own deeds, or another ordeal in their place."""
    random = Random(f"{storm.seed}:{','.join(storm.nemeses)}")
    gatherer = Gatherer(site, await site.value("SELECT clock_timestamp()"), random)
    traffic = Traffic(
        site,
        keys,
        Random(f"{storm.seed}:traffic"),
        name=f"{random.getrandbits(32):08x}",
        patience_seconds=storm.seconds + storm.patience,
    )
    redriver = Redriver(site, traffic, Random(f"{storm.seed}:redriver"))
    done = Done()
    vitals = Vitals(site)
    running = (redriver.run(), _watch_quotas(gatherer, traffic, redriver), vitals.run())
    beside = [asyncio.create_task(one) for one in running]
    await asyncio.gather(
        traffic.arrive(COURSES, storm.jobs, storm.jobs / storm.seconds),
        ordeal(site, done) if ordeal else do_all(site, planned(storm.seed, storm.seconds, storm.nemeses), done),
    )
    await site.heal()
    last_at = time.monotonic()
    quiet_at, wrong = await _until_quiet(site, traffic, gatherer, storm.patience)
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    await asyncio.sleep(LATE_SECONDS)
    evidence = await _evidence(gatherer, traffic, frozen=Nemesis.FROZEN in storm.nemeses)
    return Verdict(
        storm=storm,
        figures=await figures_of(site, evidence, done),
        done=done,
        sent=traffic.sent,
        redriven=redriver.reasons,
        violations=violations(evidence),
        wrong=[*wrong, *traffic.wrong, *done.wrong],
        quiet_seconds=None if quiet_at is None else quiet_at - last_at,
        vitals=vitals.told(),
    )


async def _evidence(gatherer: Gatherer, traffic: Traffic, *, frozen: bool) -> Evidence:
    await traffic.followers_end(FOLLOWERS_SECONDS)
    try:
        return await gatherer.gathered(traffic, frozen=frozen)
    finally:
        await traffic.close()


async def _watch_quotas(gatherer: Gatherer, traffic: Traffic, redriver: Redriver) -> None:
    while True:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            await gatherer.look_at_quotas(traffic, redriver.redriven[LIMITED])
        await asyncio.sleep(0.5)


async def _until_quiet(
    site: Site, traffic: Traffic, gatherer: Gatherer, patience_seconds: float
) -> tuple[float | None, list[str]]:
    async def look() -> bool:
        await traffic.settle()
        if await site.value(_UNDER_WAY):
            return False
        open_letters = await site.ledger.database.pool.fetch(OPEN_LETTERS)
        return all(JobState.DEAD in traffic.ends.get(row["key"], (JobState.DEAD,)) for row in open_letters)

    async def agree() -> bool:
        jobs = await gatherer._rows(Job, _JOBS)
        workflows, _ = await gatherer._workflows(jobs)
        witnesses = Witnesses(leftovers=gatherer.leftovers())
        return not list(ledger_and_temporal_agree(Evidence(jobs=jobs, workflows=workflows, witnesses=witnesses)))

    try:
        async with asyncio.timeout(patience_seconds):
            await until(look, "jobs at rest", patience_seconds, every_seconds=0.5)
            quiet_at = time.monotonic()
            await until(agree, "Temporal to agree", patience_seconds, every_seconds=1)
    except (Fruitless, TimeoutError) as error:
        return None, [f"never quiet: {error!r}: {await gatherer.told()}"]
    return quiet_at, []


_JOBS = """
SELECT jobs.*, idempotency_keys.key FROM jobs LEFT JOIN idempotency_keys ON idempotency_keys.job_id = jobs.id
 WHERE jobs.created_at >= $1"""
