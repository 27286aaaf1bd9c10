"""Each planned deed, done; what it returns is the evidence that it had an effect, None that it had none."""

import asyncio
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import asyncpg

from agentjobs.failpoints import Deed as FailpointDeed
from tests.chaos.rig import Fruitless, until, with_failpoints
from tests.chaos.storm.links import Link
from tests.chaos.storm.schedule import Deed, Nemesis
from tests.chaos.storm.site import STANDING_RULES, Site
from tests.e2e.model_double import Rule
from tests.providers.double_faults import Fault

_TROUBLES: Final[Mapping[str, Fault]] = {
    "429": Fault("status", status=429, headers={"Retry-After": "1"}, error={"message": "slow down"}),
    "500": Fault("status", status=500, error={"message": "broken"}),
    "reset": Fault("reset"),
    "break": Fault("break", pieces=1),
    "hang": Fault("hang"),
    "raw": Fault("raw", body="<html>"),
}

# What was delivered once is there again: starts of jobs that were started, and words of deaths that were told.
_STARTS_AGAIN = """
INSERT INTO outbox (topic, job_id, tenant, priority)
SELECT 'start_job', id, tenant, priority FROM jobs
 WHERE dispatched_at IS NOT NULL AND dispatched_at > now() - interval '1 minute' ORDER BY random() LIMIT $1
RETURNING id"""
_DEATHS_AGAIN = """
INSERT INTO outbox (topic, job_id, tenant, payload)
SELECT 'job_died', id, tenant, jsonb_build_object('generation', generation, 'reason', reason, 'agent', agent)
  FROM dead_letters WHERE alerted_at IS NOT NULL ORDER BY random() LIMIT 3
RETURNING id"""


MET_SECONDS = 60.0
"""By then a process under load has met its failpoint."""


@dataclass
class Done:
    """What became of the deeds."""

    fired: Counter[Nemesis] = field(default_factory=Counter)
    fruitless: Counter[Nemesis] = field(default_factory=Counter)
    killed: list[tuple[str, int, float]] = field(default_factory=list)
    """(process, pid, when by `time.time`)."""

    armed: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """What is done to one process one at a time."""

    failpoints: set[str] = field(default_factory=set)
    """Those that killed."""

    wrong: list[str] = field(default_factory=list)


async def do_all(site: Site, deeds: Iterable[Deed], done: Done) -> None:
    """Each at its time, however long the others take; returns when the last is over."""
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for deed in deeds:
            await asyncio.sleep(max(0.0, began + deed.at_seconds - time.monotonic()))
            group.create_task(_do(site, deed, done))


async def _do(site: Site, deed: Deed, done: Done) -> None:
    try:
        evidence = await _DOING[deed.nemesis](site, deed, done)
    except Exception as error:
        done.wrong.append(f"{deed}: {error!r}")
        return
    (done.fired if evidence else done.fruitless)[deed.nemesis] += 1


async def _killed(site: Site, deed: Deed, done: Done) -> bool:
    (part,) = deed.target
    pid = site.pid(part)
    done.killed.append((part, pid, time.time()))
    site.stack._supervisor.keeper(part).kill()
    return True


async def _crashed(site: Site, deed: Deed, done: Done) -> bool:
    (part,) = deed.target
    how = signal.SIGQUIT if part == "postgres" else signal.SIGKILL
    pid = await site.crash(part, how)
    return pid != site.pid(part)


async def _frozen(site: Site, deed: Deed, done: Done) -> bool:
    (part,) = deed.target
    pid = site.freeze(part)
    await asyncio.sleep(0.05)
    stood = site.is_stopped(pid)
    await asyncio.sleep(deed.seconds)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    return stood


def _on_link(strike: Callable[[Link, Deed], None]) -> "Doing":
    async def doing(site: Site, deed: Deed, done: Done) -> bool:
        client, server = deed.target
        link = site.links[client, server]
        return await _struck([link], deed, strike)

    return doing


async def _struck(links: list[Link], deed: Deed, strike: Callable[[Link, Deed], None]) -> bool:
    before = sum(link.fired.total() for link in links)
    for link in links:
        strike(link, deed)
    await asyncio.sleep(deed.seconds)
    for link in links:
        link.heal()
    return sum(link.fired.total() for link in links) > before


def _slow(link: Link, deed: Deed) -> None:
    link.latency_seconds = deed.amount


def _commits(link: Link, deed: Deed) -> None:
    link.commits_to_cut = int(deed.amount)


def _lose(link: Link, deed: Deed) -> None:
    link.random = Random(str(deed))
    link.reply_loss = deed.amount


async def _commit_cut(site: Site, deed: Deed, done: Done) -> bool:
    return await _struck(site.links_to("postgres"), deed, _commits)


async def _losing(site: Site, deed: Deed, done: Done) -> bool:
    (server,) = deed.target
    return await _struck(site.links_to(server), deed, _lose)


async def _redelivered(site: Site, deed: Deed, done: Done) -> bool:
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        pool = site.ledger.database.pool
        rows = await pool.fetch(_STARTS_AGAIN, int(deed.amount)) + await pool.fetch(_DEATHS_AGAIN)
        return bool(rows)
    return False


async def _model_in_trouble(site: Site, deed: Deed, done: Done) -> bool:
    fault = _TROUBLES[deed.how]
    site.model.rule(*STANDING_RULES, replace(Rule(fault), until=time.time() + deed.seconds))
    before = len(site.model.log.read_text("utf-8").splitlines())
    await asyncio.sleep(deed.seconds)
    lines = site.model.log.read_text("utf-8").splitlines()[before:]
    return any(f'"fault": "{fault.kind}"' in line for line in lines)


async def _clock_jumped(site: Site, deed: Deed, done: Done) -> bool:
    (part,) = deed.target
    clock = site.parts.clocks[part]

    async def look() -> bool:
        return clock.was_told()

    async with done.armed[f"the clock of {part}"]:
        clock.jump(int(deed.amount))
        over_at = time.monotonic() + deed.seconds
        try:
            await until(look, f"another time in {part}", deed.seconds, every_seconds=0.5)
        except Fruitless:
            return False
        finally:
            await asyncio.sleep(max(0.0, over_at - time.monotonic()))
            clock.jump(0)
    return True


async def _at_failpoint(site: Site, deed: Deed, done: Done) -> bool:
    (part,) = deed.target
    if deed.how.startswith("tool.") and site.parts.mix.tracker != "postgres":
        return False  # there are no transactional tools
    async with done.armed[part]:  # one at a time: a start anew would take the one before away
        return await _met(site, part, deed, done)


async def _met(site: Site, part: str, deed: Deed, done: Done) -> bool:
    keeper = site.stack._supervisor.keeper(part)
    keeper.spec = with_failpoints(keeper.spec, f"{deed.how}={FailpointDeed.KILL}@{int(deed.amount)}")
    await site.crash(part)

    async def look() -> bool:
        return site.fired(deed.how)

    try:
        await until(look, deed.how, MET_SECONDS, every_seconds=1)
    except Fruitless:
        keeper.spec = keeper.spec.after_a_crash()
        return False
    done.failpoints.add(deed.how)
    return True


Doing = Callable[[Site, Deed, Done], Awaitable[bool]]
_DOING: Final[Mapping[Nemesis, Doing]] = {
    Nemesis.WORKER_KILLED: _killed,
    Nemesis.RELAY_KILLED: _killed,
    Nemesis.API_KILLED: _killed,
    Nemesis.FROZEN: _frozen,
    Nemesis.POSTGRES_STOPPED: _crashed,
    Nemesis.TEMPORAL_KILLED: _crashed,
    Nemesis.PARTITION: _on_link(lambda link, _: link.hold()),
    Nemesis.HALF_OPEN: _on_link(lambda link, _: link.swallow()),
    Nemesis.RESET: _on_link(lambda link, _: link.reset()),
    Nemesis.SLOW: _on_link(_slow),
    Nemesis.CUT: _on_link(lambda link, deed: link.cut_after(int(deed.amount))),
    Nemesis.COMMIT_CUT: _commit_cut,
    Nemesis.DATABASE_REPLIES_LOST: _losing,
    Nemesis.TEMPORAL_REPLIES_LOST: _losing,
    Nemesis.TOOL_REPLIES_LOST: _losing,
    Nemesis.REDELIVERED: _redelivered,
    Nemesis.MODEL_IN_TROUBLE: _model_in_trouble,
    Nemesis.CLOCK_JUMP: _clock_jumped,
    Nemesis.FAILPOINT: _at_failpoint,
}
