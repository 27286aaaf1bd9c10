"""What clients do with a job: most send it and leave, some change their minds, some are rude."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from agentjobs.domain.states import FINAL, JobState
from agentjobs.tools.tickets import TICKETS_CREATE
from tests.chaos.client import Refused
from tests.chaos.evidence import Answer, Operation
from tests.chaos.storm.parts import OFFLINE
from tests.chaos.storm.reviewers import WAYS, Case, Way, until_decided
from tests.chaos.storm.rude import hang_up, poison
from tests.chaos.storm.site import BAD_OUTPUT, BUSY
from tests.chaos.storm.tenants import ADMIN, LIMITED, TENANTS, USER
from tests.chaos.storm.traffic import Course, Traffic
from tests.chaos.witnesses import Peek
from tests.providers.double_mind import AT_ONCE

SUCCEEDS = frozenset({JobState.SUCCEEDED})
STAYS_DEAD = frozenset({JobState.DEAD})
CANCELLED_OR_TOO_LATE = frozenset({JobState.CANCELLED, JobState.SUCCEEDED})
BURST = 10


async def _plain(traffic: Traffic, tenant: str, key: str) -> None:
    await traffic.submit(tenant, key, SUCCEEDS)


async def _watched(traffic: Traffic, tenant: str, key: str) -> None:
    traffic.follow(tenant, await traffic.submit(tenant, key, SUCCEEDS))


async def _cancelled(traffic: Traffic, tenant: str, key: str) -> None:
    job_id = await traffic.submit(tenant, key, CANCELLED_OR_TOO_LATE)
    await asyncio.sleep(traffic.random.uniform(0, 3))
    with suppress(Refused):  # it was over, or dead, before
        await traffic.client(tenant).cancel(job_id)


async def _cancelled_in_a_wait(traffic: Traffic, tenant: str, key: str) -> None:
    """Its model is in trouble, and its next attempt waits."""
    job_id = await traffic.submit(tenant, key, CANCELLED_OR_TOO_LATE, say=f"{BUSY} {AT_ONCE}")
    await traffic.until(tenant, job_id, frozenset({JobState.RETRY_WAIT, JobState.DEAD, *FINAL}))
    await asyncio.sleep(traffic.random.uniform(0, 1))
    with suppress(Refused):
        await traffic.client(tenant).cancel(job_id)


async def _cancelled_when_dead(traffic: Traffic, tenant: str, key: str) -> None:
    """Refused, unless somebody has redriven it just then."""
    user, job_id = await _dead(traffic, tenant, key, CANCELLED_OR_TOO_LATE)
    with suppress(Refused):
        await traffic.client(tenant, user).cancel(job_id)
    await traffic.client(tenant, ADMIN).grant(user, TICKETS_CREATE)


def _asked(way: Way) -> Course:
    async def course(traffic: Traffic, tenant: str, key: str) -> None:
        job_id = await traffic.submit(tenant, key, SUCCEEDS, say="")
        if traffic.site.parts.mix.asks_approval:
            await until_decided(Case(traffic, tenant, key, job_id), way)

    return course


async def _not_granted(traffic: Traffic, tenant: str, key: str) -> None:
    """Dies for want of a grant, is granted it, and is redriven by whoever looks after dead letters."""
    user, _ = await _dead(traffic, tenant, key, SUCCEEDS)
    await traffic.client(tenant, ADMIN).grant(user, TICKETS_CREATE)


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


async def _dead(traffic: Traffic, tenant: str, key: str, ends: frozenset[JobState]) -> tuple[str, str]:
    """A job that has died for want of a grant: (who lacks it, its id). Somebody may redrive it at any moment."""
    user = f"late-{key}"
    traffic.keys.of[tenant, user] = await traffic.client(tenant, ADMIN).make_key(user)
    job_id = await traffic.submit(tenant, key, ends, user=user)
    await traffic.until(tenant, job_id, frozenset({JobState.DEAD, *FINAL}))
    return user, job_id


COURSES: Mapping[str, tuple[int, Course]] = {
    "plain": (70, _plain),
    "watched": (8, _watched),
    "cancelled": (6, _cancelled),
    "cancelled in a wait": (2, _cancelled_in_a_wait),
    "cancelled when dead": (1, _cancelled_when_dead),
    "not granted": (2, _not_granted),
    "twice at once": (3, _twice_at_once),
    "burst": (1, _burst),
    "hung up": (3, _hung_up),
    "poison": (3, _poison),
    "bad output": (1, _bad_output),
    "peeked": (3, _peeked),
    **{name: (1, _asked(way)) for name, way in WAYS.items()},
}
