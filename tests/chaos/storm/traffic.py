"""The load: jobs of several tenants, sent at random moments that wait for nobody, and what follows."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import httpx

from agentjobs.domain.states import JobState
from tests.chaos.client import Client
from tests.chaos.evidence import Operation
from tests.chaos.rig import until
from tests.chaos.storm.parts import APIS, CLIENTS
from tests.chaos.storm.site import Site
from tests.chaos.storm.streams import Follower
from tests.chaos.storm.tenants import ADMIN, TENANTS, USER, Keys
from tests.chaos.witnesses import Followed, Peek
from tests.providers.double_mind import AT_ONCE

Course = Callable[["Traffic", str, str], Awaitable[None]]
"""What is done with one job: (traffic, tenant, idempotency key)."""


@dataclass
class Traffic:
    """Sends jobs and knows where each may end. Has what the collector asks of a load."""

    site: Site
    keys: Keys
    random: Random
    name: str = "run"
    """In every key: several storms may pass over one site."""

    history: list[Operation] = field(default_factory=list)
    ends: dict[str, frozenset[JobState]] = field(default_factory=dict)
    """By idempotency key: where its job may end, if there is one."""

    expected: dict[str, frozenset[JobState]] = field(default_factory=dict)
    """By job: of those that were answered for."""

    followed: list[Followed] = field(default_factory=list)
    peeks: list[Peek] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    is_over: bool = False
    """Nobody will do anything more to a job."""

    patience_seconds: float = 600.0
    """For which a client asks again and again. In a quota of six, those who come last wait for all before them."""

    canary: str = field(default_factory=lambda: f"canary{secrets.token_hex(8)}")
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _clients: dict[tuple[str, str], Client] = field(default_factory=dict)
    _follower: dict[str, Follower] = field(default_factory=dict)

    @property
    def apis(self) -> tuple[str, ...]:
        """Through the clients' links."""
        return tuple(self.site.parts.url(CLIENTS, api) for api in APIS)

    @property
    def planted(self) -> Mapping[str, str]:
        """What must be found nowhere outside, by what it is."""
        keys = {f"the key of {tenant}'s {user}": key for (tenant, user), key in self.keys.of.items()}
        password = httpx.URL(self.site.stack.info.database).password
        secret = {"the alert secret": self.site.parts.secret, "the database's password": password}
        return keys | secret | {"the job's text": self.canary}

    async def arrive(self, courses: Mapping[str, tuple[int, Course]], count: int, per_second: float) -> None:
        """So many, by weights, open loop: whether the last was answered is no matter to the next."""
        weights = [weight for weight, _ in courses.values()]
        names = self.random.sample(list(courses), len(courses))  # however few there are, each comes
        names += self.random.choices(list(courses), weights=weights, k=max(0, count - len(names)))
        for number, name in enumerate(names[:count], start=1):
            tenant = self.random.choices(TENANTS, weights=(48, 48, 4))[0]
            self.sent[name] += 1
            self._go(courses[name][1](self, tenant, f"{tenant}-{self.name}-{number}"))
            await asyncio.sleep(self.random.expovariate(per_second))

    async def settle(self) -> None:
        """Until every course but those of followers is through."""
        while waiting := [task for task in self._tasks if task.get_name() != "follow"]:
            await asyncio.wait(waiting)

    async def followers_end(self, seconds: float) -> None:
        """Nothing more happens: whoever follows a job sees its end within this time."""
        self.is_over = True
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            self.wrong.extend(f"{task.get_name()}: still waits {seconds:g} s after the end" for task in late)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()
        for follower in self._follower.values():
            await follower.close()

    def client(self, tenant: str, user: str = USER) -> Client:
        """One for each user."""
        if (tenant, user) not in self._clients:
            key = self.keys.of[tenant, user]
            self._clients[tenant, user] = Client(
                self.apis, key, self.history, user=user, patience_seconds=self.patience_seconds
            )
        return self._clients[tenant, user]

    async def submit(
        self, tenant: str, key: str, ends: frozenset[JobState], *, user: str = USER, say: str = AT_ONCE
    ) -> str:
        """Insist until it is accepted."""
        self.ends[key] = ends
        job_id = await self.client(tenant, user).submit(self.text(key, say), key)
        self.expected[job_id] = ends
        return job_id

    def text(self, key: str, say: str = AT_ONCE) -> str:
        """A request that tells a reader of the judges' logs whose it is, and holds what no log may hold."""
        return f"Request {key} {say}\n{self.canary}"

    def follow(self, tenant: str, job_id: str) -> None:
        """In the background, to the job's end."""

        async def course() -> None:
            follower = self._follower.setdefault(
                tenant, Follower(self.apis, self.keys.of[tenant, USER], Random(self.random.random()))
            )
            self.followed.append(await follower.follow(job_id, lambda: self.is_over))

        self._go(course(), name="follow")

    async def state(self, tenant: str, job_id: str) -> str | None:
        """Where the job stands, if anybody says so."""
        return await self.client(tenant, ADMIN).state(job_id)

    async def until(self, tenant: str, job_id: str, states: frozenset[str]) -> str | None:
        """Look, as a client does who has no stream; which of these states it is."""
        seen: str | None = None

        async def look() -> bool:
            nonlocal seen
            seen = await self.state(tenant, job_id)
            return seen in states

        await until(look, f"job {job_id}", self.patience_seconds, every_seconds=2)
        return seen

    def _go(self, course: Awaitable[None], name: str = "course") -> None:
        async def kept() -> None:
            try:
                await course
            except Exception as error:
                self.wrong.append(f"{name}: {error!r}")

        task = asyncio.create_task(kept(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
