"""Looks after dead letters as people do, one or two at once: redrives what is not meant to stay dead."""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import asyncpg

from agentjobs.domain.states import JobState
from tests.chaos.client import Refused
from tests.chaos.storm.site import Site
from tests.chaos.storm.tenants import ADMIN, SECOND
from tests.chaos.storm.traffic import Traffic

LOOK_SECONDS = (0.5, 3.0)

OPEN_LETTERS = """
SELECT dead_letters.id, dead_letters.tenant, dead_letters.reason, key FROM dead_letters
  JOIN idempotency_keys ON job_id = dead_letters.id WHERE state = 'open'"""


class Redriver:
    """One for all tenants."""

    def __init__(self, site: Site, traffic: Traffic, random: Random) -> None:
        self._site = site
        self._traffic = traffic
        self._random = random
        self.redriven: Counter[str] = Counter()
        """By tenant."""

        self.reasons: Counter[str] = Counter()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                await self.run_once()
            await asyncio.sleep(self._random.uniform(*LOOK_SECONDS))

    async def run_once(self) -> int:
        """Every letter that is open now; how many."""
        rows = await self._site.ledger.database.pool.fetch(OPEN_LETTERS)
        ends = self._traffic.ends
        mine = [row for row in rows if row["key"] in ends and JobState.DEAD not in ends[row["key"]]]
        for row in mine:
            self.redriven[row["tenant"]] += 1
            self.reasons[row["reason"]] += 1
            people = self._random.choice(((ADMIN,), (SECOND,), (ADMIN, SECOND)))
            await asyncio.gather(*(self._redriven(row["tenant"], row["id"], person) for person in people))
        return len(mine)

    async def _redriven(self, tenant: str, job_id: str, person: str) -> None:
        with suppress(Refused):  # cancelled, or alive again, meanwhile
            await self._traffic.client(tenant, person).redrive(job_id)
