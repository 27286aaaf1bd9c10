"""The figures of one storm: how much was done, and how soon trouble was noticed."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.evidence import Evidence
from tests.chaos.storm.deeds import Done
from tests.chaos.storm.parts import CLIENTS
from tests.chaos.storm.site import Site

_LOST = """
SELECT extract(epoch FROM lost_at)::float8 FROM workers
 WHERE split_part(identity, ':', 2) = $1 AND lost_at > to_timestamp($2) ORDER BY lost_at LIMIT 1"""


@dataclass
class Figures:
    """What is told of it beside its violations."""

    jobs: int
    states: Counter[str]
    operations: Counter[str]
    attempts: Counter[str]
    tickets: int
    repeated: int
    """Creations that the destination refused as repetitions."""

    model_calls: int
    events: int
    followers: int
    connects: int
    deaths: int
    replayed: int
    leftovers: int
    """Workflows that the relay ended, since their jobs were over for a minute."""

    link_faults: Counter[str] = field(default_factory=Counter)
    deaths_noticed: list[float] = field(default_factory=list)
    """Seconds from the kill of a worker until the ledger has it as lost."""

    holes_noticed: list[tuple[float, str]] = field(default_factory=list)
    """Seconds from the first question into a half-open connection until its client closed it. Not of the API's own
    clients: how long these wait for silence to end is their affair.
    """


async def figures_of(site: Site, evidence: Evidence, done: Done) -> Figures:
    """Of the site as it is now."""
    witnesses = evidence.witnesses
    return Figures(
        jobs=len(evidence.jobs),
        states=Counter(str(job.state) for job in evidence.jobs),
        operations=Counter(f"{operation.what} {operation.answer}" for operation in evidence.operations),
        attempts=Counter(attempt.outcome for attempt in evidence.attempts),
        tickets=len(evidence.tickets),
        repeated=sum(word.did == "repeated" for word in witnesses.ticket_words),
        model_calls=len(witnesses.model_calls),
        events=len(evidence.events),
        followers=len(witnesses.followed),
        connects=sum(followed.connects for followed in witnesses.followed),
        deaths=len(witnesses.deaths),
        replayed=sum(name.startswith("history of") for name in evidence.texts),
        link_faults=sum((link.fired for link in site.links.values()), Counter()),
        deaths_noticed=await _deaths_noticed(site, done),
        holes_noticed=[
            (seconds, f"{client} to {server}")
            for (client, server), link in site.links.items()
            if client != CLIENTS
            for seconds in link.noticed_seconds
        ],
        leftovers=len(witnesses.leftovers),
    )


async def _deaths_noticed(site: Site, done: Done) -> list[float]:
    noticed = []
    for part, pid, at in done.killed:
        if part.startswith("worker"):
            lost_at = await site.value(_LOST, str(pid), at)
            if lost_at is not None:
                noticed.append(lost_at - at)
    return noticed


def spread(values: Sequence[float]) -> str:
    """Number, median, and the worst of all and of nine in ten."""
    if not values:
        return "none"
    ninth = sorted(values)[math.ceil(0.9 * len(values)) - 1]
    return (
        f"n={len(values)}, median {statistics.median(values):.2f} s, nine in ten within {ninth:.2f} s, "
        f"worst {max(values):.2f} s"
    )
