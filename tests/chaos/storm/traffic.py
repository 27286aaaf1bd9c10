"""The load: jobs of several tenants, sent at random moments that wait for nobody, and what follows."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import httpx

from agentjobs.domain.states import FINAL, JobState
from tests.chaos.client import Client, Refused
from tests.chaos.evidence import Answer, Operation
from tests.chaos.rig import until
from tests.chaos.storm.parts import APIS, CLIENTS, OFFLINE
from tests.chaos.storm.rude import hang_up, poison
from tests.chaos.storm.site import BAD_OUTPUT, Site
from tests.chaos.storm.streams import Follower
from tests.chaos.storm.tenants import ADMIN, LIMITED, TENANTS, USER, Keys
from tests.chaos.witnesses import Followed, Peek

SUCCEEDS = frozenset({JobState.SUCCEEDED})
STAYS_DEAD = frozenset({JobState.DEAD})
CANCELLED_OR_TOO_LATE = frozenset({JobState.CANCELLED, JobState.SUCCEEDED})
PATIENCE_SECONDS = 600.0
BURST = 10
Course = Callable[["Traffic", str, str], Awaitable[None]]


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

    async def arrive(self, count: int, per_second: float) -> None:
        """So many, open loop: whether the last was answered is no matter to the next."""
        weights = [weight for weight, _ in COURSES.values()]
        names = self.random.sample(list(COURSES), len(COURSES))  # however few there are, each comes
        names += self.random.choices(list(COURSES), weights=weights, k=max(0, count - len(names)))
        for number, name in enumerate(names[:count], start=1):
            tenant = self.random.choices(TENANTS, weights=(48, 48, 4))[0]
            self.sent[name] += 1
            self._go(self._course(name, tenant, f"{tenant}-{self.name}-{number}"))
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
            self._clients[tenant, user] = Client(self.apis, key, self.history, patience_seconds=PATIENCE_SECONDS)
        return self._clients[tenant, user]

    async def submit(
        self, tenant: str, key: str, ends: frozenset[JobState], *, user: str = USER, say: str = ""
    ) -> str:
        """Insist until it is accepted."""
        self.ends[key] = ends
        job_id = await self.client(tenant, user).submit(self.text(key, say), key)
        self.expected[job_id] = ends
        return job_id

    def text(self, key: str, say: str = "") -> str:
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

    async def until(self, tenant: str, job_id: str, states: frozenset[str]) -> None:
        """Look, as a client does who has no stream."""

        async def look() -> bool:
            return await self.state(tenant, job_id) in states

        await until(look, f"job {job_id}", PATIENCE_SECONDS, every_seconds=0.5)

    async def _course(self, name: str, tenant: str, key: str) -> None:
        await COURSES[name][1](self, tenant, key)

    def _go(self, course: Awaitable[None], name: str = "course") -> None:
        async def kept() -> None:
            try:
                await course
            except Exception as error:
                self.wrong.append(f"{name}: {error!r}")

        task = asyncio.create_task(kept(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _plain(traffic: Traffic, tenant: str, key: str) -> None:
    await traffic.submit(tenant, key, SUCCEEDS)


async def _watched(traffic: Traffic, tenant: str, key: str) -> None:
    traffic.follow(tenant, await traffic.submit(tenant, key, SUCCEEDS))


async def _cancelled(traffic: Traffic, tenant: str, key: str) -> None:
    job_id = await traffic.submit(tenant, key, CANCELLED_OR_TOO_LATE)
    await asyncio.sleep(traffic.random.uniform(0, 3))
    with suppress(Refused):  # it was over, or dead, before
        await traffic.client(tenant).cancel(job_id)


async def _not_granted(traffic: Traffic, tenant: str, key: str) -> None:
    """Dies for want of a grant, is granted it, and is redriven by whoever looks after dead letters."""
    user = f"late-{key}"
    admin = traffic.client(tenant, ADMIN)
    traffic.keys.of[tenant, user] = await admin.make_key(user)
    job_id = await traffic.submit(tenant, key, SUCCEEDS, user=user)
    await traffic.until(tenant, job_id, frozenset({"dead", *FINAL}))
    await admin.grant(user, "tickets:create")


async def _twice_at_once(traffic: Traffic, tenant: str, key: str) -> None:
    await asyncio.gather(*(traffic.submit(tenant, key, SUCCEEDS) for _ in range(3)))


async def _burst(traffic: Traffic, tenant: str, key: str) -> None:
    """More at once than the one tenant's quota lets in."""
    keys = [f"{LIMITED}{key.removeprefix(tenant)}-{number}" for number in range(BURST)]
    await asyncio.gather(*(traffic.submit(LIMITED, one, SUCCEEDS) for one in keys))


async def _hung_up(traffic: Traffic, tenant: str, key: str) -> None:
    """Whether there is a job is not known; if there is, it succeeds."""
    traffic.ends[key] = SUCCEEDS
    traffic.history.append(Operation("submit", key, Answer.UNKNOWN))
    api = traffic.random.choice(traffic.apis)
    await hang_up(api, traffic.keys.of[tenant, USER], key, traffic.text(key), traffic.random.uniform(0, 0.05))


async def _poison(traffic: Traffic, tenant: str, key: str) -> None:
    """Nothing comes of it: no job of this key."""
    status = await poison(traffic.random, traffic.apis, traffic.keys.of[tenant, USER], key)
    answer = Answer.UNKNOWN if status is None or status >= 500 else Answer.OK if status < 400 else Answer.FAILED
    traffic.history.append(Operation("poison", key, answer, status))


async def _bad_output(traffic: Traffic, tenant: str, key: str) -> None:
    ends = SUCCEEDS if traffic.site.parts.mix.model == OFFLINE else STAYS_DEAD
    await traffic.submit(tenant, key, ends, say=BAD_OUTPUT)


async def _peeked(traffic: Traffic, tenant: str, key: str) -> None:
    """Another tenant asks for it."""
    job_id = await traffic.submit(tenant, key, SUCCEEDS)
    other = traffic.random.choice([one for one in TENANTS if one not in (tenant, LIMITED)])
    status = await traffic.client(other, ADMIN).status_of(job_id)
    traffic.peeks.append(Peek(job_id, other, status))


COURSES: Mapping[str, tuple[int, Course]] = {
    "plain": (70, _plain),
    "watched": (8, _watched),
    "cancelled": (6, _cancelled),
    "not granted": (2, _not_granted),
    "twice at once": (3, _twice_at_once),
    "burst": (1, _burst),
    "hung up": (3, _hung_up),
    "poison": (3, _poison),
    "bad output": (1, _bad_output),
    "peeked": (3, _peeked),
}
