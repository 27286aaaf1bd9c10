"""What is to happen when. All choices follow from the seed: printed, it plays the same schedule again."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from agentjobs.failpoints import NAMES
from tests.chaos.rig import child_of
from tests.chaos.storm.parts import APIS, CLOCKED, JUDGES, NEEDS, RELAYS, SERVERS, WORKERS


class Nemesis(StrEnum):
    """One kind of fault."""

    WORKER_KILLED = "worker killed"
    RELAY_KILLED = "relay killed"
    API_KILLED = "api killed"
    FROZEN = "frozen"
    """SIGSTOP of any process, then SIGCONT."""

    POSTGRES_STOPPED = "postgres stopped"
    """An immediate shutdown: sessions cut off, crash recovery at the start."""

    TEMPORAL_KILLED = "temporal killed"
    PARTITION = "partition"
    """Nothing passes for a while; what was sent arrives then."""

    HALF_OPEN = "half open"
    """Connections that are dead for good, of which nobody says so."""

    RESET = "reset"
    SLOW = "slow"
    CUT = "cut"
    """In the middle of what the server sends."""

    COMMIT_CUT = "commit cut"
    """The database has committed; who asked hears a reset."""

    DATABASE_REPLIES_LOST = "database replies lost"
    TEMPORAL_REPLIES_LOST = "temporal replies lost"
    TOOL_REPLIES_LOST = "tool replies lost"
    """Executed, then an error: for 1, 5 or 20 of 100 requests."""

    REDELIVERED = "redelivered"
    """Outbox rows that were delivered are there again."""

    MODEL_IN_TROUBLE = "model in trouble"
    CLOCK_JUMP = "clock jump"
    """The wall clock of an API or a relay is ahead or behind for a while."""

    FAILPOINT = "failpoint"
    """kill -9 at one of the places that docs/failure-boundaries.md names."""


LOSSES: Final = (0.01, 0.05, 0.2)
GAP_SECONDS: Final[Mapping[Nemesis, tuple[float, float]]] = {
    Nemesis.POSTGRES_STOPPED: (2.0, 10.0),
    Nemesis.TEMPORAL_KILLED: (10.0, 30.0),
    Nemesis.FROZEN: (8.0, 20.0),
    Nemesis.WORKER_KILLED: (5.0, 15.0),
}
OTHER_GAP_SECONDS: Final = (6.0, 20.0)
"""From one deed of a kind to the next."""

SHARE_OF_TIME: Final = 0.8
"""In which failpoints are set, so that the last one is still met by the load."""

CROWD: Final = 4
"""So many kinds at once come as often as they come alone; of more, each is rarer, or nothing would ever run."""

_LASTING: Final = tuple(
    (client, server) for client, servers in NEEDS.items() for server in servers if server not in JUDGES
)
"""Links whose connections stand for long: to the judges there is one for each request."""

JUMPS: Final = (5, 300, 7_200, 100_000)
"""Seconds, ahead or behind."""

_TROUBLES: Final = ("429", "500", "reset", "break", "hang", "raw")


@dataclass(frozen=True)
class Deed:
    """One fault, as planned."""

    at_seconds: float
    nemesis: Nemesis
    target: tuple[str, ...] = ()
    """Process, or (client, server) of a link."""

    seconds: float = 0.0
    amount: float = 0.0
    how: str = ""

    def __str__(self) -> str:
        target = " - ".join(self.target)
        parts = [target, self.how, f"{self.amount:g}" if self.amount else ""]
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at_seconds:6.1f} s  {self.nemesis} {' '.join(part for part in parts if part)}{lasting}"


def planned(seed: str, seconds: float, nemeses: Collection[Nemesis]) -> list[Deed]:
    """Every deed in order of time. Each kind draws from a source of its own: what one does, moves no other."""
    rarer = max(1.0, len(nemeses) / CROWD)
    deeds: list[Deed] = []
    for nemesis in nemeses:
        random = Random(f"{seed}:{nemesis}")
        deeds += (
            _failpoints(random, seconds)
            if nemesis is Nemesis.FAILPOINT
            else _of_one(random, nemesis, seconds, rarer)
        )
    return sorted(deeds, key=lambda deed: deed.at_seconds)


def _failpoints(random: Random, seconds: float) -> list[Deed]:
    """Each of them once, evenly spread, and those of one kind of process over all of that kind."""
    names = random.sample(sorted(NAMES), len(NAMES))
    names.sort(key=lambda name: not name.startswith("submit."))  # when all is sent, these are met no more
    turn: Counter[tuple[str, ...]] = Counter()
    deeds = []
    for at, name in enumerate(names):
        hosts = hosts_of(name)
        part = hosts[turn[hosts] % len(hosts)]
        turn[hosts] += 1
        when = at * seconds * SHARE_OF_TIME / len(names)
        deeds.append(Deed(when, Nemesis.FAILPOINT, (part,), amount=random.randint(1, 3), how=name))
    return deeds


def hosts_of(failpoint: str) -> tuple[str, ...]:
    """The processes that reach it."""
    return {"api": APIS, "relay": RELAYS}.get(child_of(failpoint), WORKERS)


def _of_one(random: Random, nemesis: Nemesis, seconds: float, rarer: float) -> list[Deed]:
    shortest, longest = GAP_SECONDS.get(nemesis, OTHER_GAP_SECONDS)
    deeds: list[Deed] = []
    at = random.uniform(1.0, longest)
    while at < seconds or not deeds:
        deeds.append(_DRAWN[nemesis](random, at, nemesis))
        at += random.uniform(shortest, longest) * rarer
    return deeds


def _process(*parts: str) -> Callable[[Random, float, Nemesis], Deed]:
    def drawn(random: Random, at: float, nemesis: Nemesis) -> Deed:
        return Deed(at, nemesis, (random.choice(parts),))

    return drawn


def _frozen(random: Random, at: float, nemesis: Nemesis) -> Deed:
    part = random.choice((*APIS, *RELAYS, *WORKERS, *WORKERS, *SERVERS))
    longest = 5.0 if part in SERVERS else 20.0
    return Deed(at, nemesis, (part,), seconds=random.uniform(1.0, longest))


def _link(longest: float, amounts: tuple[float, ...] = (0.0,)) -> Callable[[Random, float, Nemesis], Deed]:
    def drawn(random: Random, at: float, nemesis: Nemesis) -> Deed:
        seconds = random.uniform(longest / 5, longest) if longest else 0.0
        return Deed(at, nemesis, random.choice(_LASTING), seconds=seconds, amount=random.choice(amounts))

    return drawn


def _commit_cut(random: Random, at: float, nemesis: Nemesis) -> Deed:
    return Deed(at, nemesis, ("postgres",), seconds=random.uniform(2.0, 10.0), amount=random.choice((1, 3)))


def _losing(*servers: str, longest: float = 10.0) -> Callable[[Random, float, Nemesis], Deed]:
    def drawn(random: Random, at: float, nemesis: Nemesis) -> Deed:
        seconds = random.uniform(longest / 2, longest)
        return Deed(at, nemesis, (random.choice(servers),), seconds=seconds, amount=random.choice(LOSSES))

    return drawn


def _trouble(random: Random, at: float, nemesis: Nemesis) -> Deed:
    how = random.choice(_TROUBLES)
    return Deed(at, nemesis, ("model",), seconds=random.uniform(1.0, 6.0), how=how)


def _jump(random: Random, at: float, nemesis: Nemesis) -> Deed:
    amount = random.choice(JUMPS) * random.choice((-1, 1))
    return Deed(at, nemesis, (random.choice(CLOCKED),), seconds=random.uniform(5.0, 20.0), amount=amount)


def _anywhere(random: Random, at: float, nemesis: Nemesis) -> Deed:
    return Deed(at, nemesis, amount=random.randint(1, 20))


_DRAWN: Final[Mapping[Nemesis, Callable[[Random, float, Nemesis], Deed]]] = {
    Nemesis.WORKER_KILLED: _process(*WORKERS),
    Nemesis.RELAY_KILLED: _process(*RELAYS),
    Nemesis.API_KILLED: _process(*APIS),
    Nemesis.FROZEN: _frozen,
    Nemesis.POSTGRES_STOPPED: _process("postgres"),
    Nemesis.TEMPORAL_KILLED: _process("temporal"),
    Nemesis.PARTITION: _link(20.0),
    Nemesis.HALF_OPEN: _link(10.0),
    Nemesis.RESET: _link(0.0),
    Nemesis.SLOW: _link(15.0, (0.02, 0.1, 0.5)),
    Nemesis.CUT: _link(10.0, (64, 1024, 16384)),
    Nemesis.COMMIT_CUT: _commit_cut,
    Nemesis.DATABASE_REPLIES_LOST: _losing("postgres"),
    Nemesis.TEMPORAL_REPLIES_LOST: _losing("temporal"),
    Nemesis.TOOL_REPLIES_LOST: _losing("model", "tickets", longest=30.0),  # they are asked less often
    Nemesis.REDELIVERED: _anywhere,
    Nemesis.MODEL_IN_TROUBLE: _trouble,
    Nemesis.CLOCK_JUMP: _jump,
}
