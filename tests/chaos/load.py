"""The jobs of one run: plain ones, one that is cancelled, one that dies and is redriven, one that stays dead."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import httpx

from agentjobs.domain.states import JobState
from agentjobs.tools.tickets import TICKETS_CREATE
from tests.chaos.client import Client, Refused
from tests.chaos.evidence import Operation
from tests.chaos.rig import Rig, until

PLAIN = 4
COURSE_SECONDS = 100.0
MOST = 60
"""As many jobs are sent while a fault waits to be met; then it is taken to be out of reach."""

SUCCEEDS = frozenset({JobState.SUCCEEDED})
STAYS_DEAD = frozenset({JobState.DEAD})
CANCELLED_OR_TOO_LATE = frozenset({JobState.CANCELLED, JobState.SUCCEEDED})


@dataclass
class Load:
    """Submits, cancels and redrives through the API, and knows where each job may end."""

    rig: Rig
    random: Random
    name: str
    history: list[Operation] = field(default_factory=list)
    expected: dict[str, frozenset[JobState]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """The API keys in use, by user."""

    canary: str = field(default_factory=lambda: f"canary{secrets.token_hex(8)}")
    _count: int = 0
    _clients: list[Client] = field(default_factory=list)

    async def prepare(self) -> None:
        """Users and clients, before anything breaks."""
        self.admin = self._client(self.rig.stack.info.admin_key)
        self.owner = self._client(self.rig.stack.info.api_key)
        for user in (f"late-{self.name}", f"never-{self.name}"):
            self.keys[user] = await self.admin.make_key(user)

    async def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            await client.close()

    async def run(self) -> None:
        """The mix, a random moment apart; returns when each has had what is to happen to it."""
        late, never = self.keys
        async with asyncio.TaskGroup() as group:
            for course in self.random.sample(
                [
                    *[self.plain() for _ in range(PLAIN)],
                    self._cancelled(),
                    self._redriven(late),
                    self._left_dead(never),
                ],
                PLAIN + 3,
            ):
                group.create_task(course)
                await asyncio.sleep(self.random.uniform(0, 0.1))

    async def feed(self, met: asyncio.Event) -> None:
        """More plain jobs until the fault was met."""
        while not met.is_set() and self._count < MOST:
            await self.plain()
            await asyncio.sleep(0.2)

    async def plain(self) -> str:
        """A job that succeeds."""
        return await self._submit(self.owner, SUCCEEDS)

    async def _cancelled(self) -> None:
        job_id = await self._submit(self.owner, CANCELLED_OR_TOO_LATE)
        await self._until(job_id, JobState.PENDING, leaves=True)
        await asyncio.sleep(self.random.uniform(0, 0.1))
        try:
            await self.owner.cancel(job_id)
        except Refused as refused:
            if refused.status != 409:
                raise

    async def _redriven(self, user: str) -> None:
        job_id = await self._submit(self._client(self.keys[user]), SUCCEEDS)
        await self._until(job_id, JobState.DEAD)
        await self.admin.grant(user, TICKETS_CREATE)
        await self.admin.redrive(job_id)

    async def _left_dead(self, user: str) -> None:
        await self._submit(self._client(self.keys[user]), STAYS_DEAD)

    async def _submit(self, client: Client, ends: frozenset[JobState]) -> str:
        self._count += 1
        text = f"My printer {self.canary} is on fire, for the {self._count}th time"
        job_id = await client.submit(text, f"{self.name}-{self._count}")
        self.expected[job_id] = ends
        return job_id

    async def _until(self, job_id: str, state: JobState, *, leaves: bool = False) -> None:
        async def look() -> bool:
            now = await self.admin.state(job_id)
            return now is not None and (now == state) is not leaves

        await until(look, f"job {job_id} to {'leave' if leaves else 'reach'} {state}", COURSE_SECONDS)

    def _client(self, key: str) -> Client:
        client = self.rig.client(self.history, key)
        self._clients.append(client)
        return client

    @property
    def planted(self) -> Mapping[str, str]:
        """What must be found nowhere outside, by what it is."""
        password = httpx.URL(self.rig.stack.info.database).password
        secret = {"the database's password": password}
        keys = {f"the API key of {user}": key for user, key in self.keys.items()}
        return (
            {
                "the job's text": self.canary,
                "the submit key": self.rig.stack.info.api_key,
                "the admin key": self.rig.stack.info.admin_key,
            }
            | keys
            | secret
        )
