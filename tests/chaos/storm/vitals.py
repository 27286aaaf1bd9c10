"""Memory, descriptors, connections and dead rows while a storm goes on, and how they rise with the jobs."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg
import psutil

from tests.chaos.storm.parts import APIS, RELAYS, WORKERS
from tests.chaos.storm.site import Site

LOOK_SECONDS = 5.0
PER_JOBS = 1_000

_OF_DATABASE = """
SELECT (SELECT count(*) FROM jobs WHERE finalized_at IS NOT NULL) AS jobs,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
       (SELECT sum(n_dead_tup) FROM pg_stat_user_tables) AS dead_rows"""


@dataclass(frozen=True)
class Look:
    """At one moment: the jobs that had ended, and what was in use by all processes of ours together."""

    jobs: int
    values: dict[str, float]


@dataclass
class Vitals:
    """Looks, from the first to the last."""

    site: Site
    looks: list[Look] = field(default_factory=list)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, psutil.Error):
                await self.run_once()
            await asyncio.sleep(LOOK_SECONDS)

    async def run_once(self) -> None:
        """One look."""
        row = await self.site.ledger.database.pool.fetchrow(_OF_DATABASE)
        assert row is not None
        values = {"connections": float(row["connections"]), "dead rows": float(row["dead_rows"] or 0)}
        for kind, parts in (("api", APIS), ("relay", RELAYS), ("worker", WORKERS)):
            processes = [psutil.Process(self.site.pid(part)) for part in parts]
            values[f"{kind} MB"] = sum(process.memory_info().rss for process in processes) / 1e6
            values[f"{kind} descriptors"] = float(sum(process.num_fds() for process in processes))
        self.looks.append(Look(row["jobs"], values))

    def told(self) -> str:
        """First and last value of each, and the slope by 1,000 jobs over the second half, when all is warm."""
        if len(self.looks) < 4:
            return "too few looks"
        warm = self.looks[len(self.looks) // 2 :]
        first, last = self.looks[0].values, self.looks[-1].values
        return "; ".join(
            f"{name} {first[name]:.0f} to {last[name]:.0f} ({slope(warm, name):+.1f})" for name in sorted(last)
        )


def slope(looks: list[Look], name: str) -> float:
    """By least squares, for each 1,000 jobs; 0 where no jobs ended."""
    jobs = [look.jobs / PER_JOBS for look in looks]
    values = [look.values[name] for look in looks]
    middle, mean = sum(jobs) / len(jobs), sum(values) / len(values)
    spread = sum((at - middle) ** 2 for at in jobs)
    if not spread:
        return 0.0
    return sum((at - middle) * (value - mean) for at, value in zip(jobs, values, strict=True)) / spread
