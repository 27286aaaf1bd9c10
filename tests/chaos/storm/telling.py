"""A verdict as text: for the terminal, and for docs/chaos.md."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.chaos.storm.campaign import Storm, Verdict
from tests.chaos.storm.figures import spread
from tests.chaos.storm.schedule import planned

MOST_SHOWN = 40


def plan_told(storm: Storm) -> str:
    """What will happen, deed by deed."""
    deeds = planned(storm.seed, storm.seconds, storm.nemeses)
    return "\n".join([f"SEED={storm.seed}: {len(deeds)} deeds in {storm.seconds:g} s", *map(str, deeds)])


def verdict_told(verdict: Verdict) -> str:
    """The figures, and whatever is wrong."""
    return "\n".join(_lines(verdict))


def _lines(verdict: Verdict) -> Iterator[str]:
    figures, storm = verdict.figures, verdict.storm
    yield f"SEED={storm.seed}, {storm.seconds:g} s of {', '.join(storm.nemeses) or 'fair weather'}"
    yield f"sent: {_counted(verdict.sent)}"
    yield f"jobs: {figures.jobs} ({_counted(figures.states)})"
    yield f"operations: {_counted(figures.operations)}"
    yield f"attempts: {_counted(figures.attempts)}"
    yield f"tickets: {figures.tickets}, refused as repeated: {figures.repeated}"
    yield f"model calls: {figures.model_calls}; histories replayed: {figures.replayed}"
    yield f"events: {figures.events}; followers: {figures.followers} over {figures.connects} connections"
    yield f"deaths: {figures.deaths}; redriven: {_counted(verdict.redriven)}"
    yield f"faults fired: {_counted(verdict.done.fired)}"
    yield f"without effect: {_counted(verdict.done.fruitless)}; on links: {_counted(figures.link_faults)}"
    yield f"a worker's death noticed: {spread(figures.deaths_noticed)}"
    slowest = max(figures.holes_noticed, default=(0.0, "nobody"))[1]
    yield f"half-open links noticed: {spread([at for at, _ in figures.holes_noticed])} ({slowest})"
    yield f"workflows of jobs that were over, ended by the relay: {figures.leftovers}"
    quiet = "NEVER" if verdict.quiet_seconds is None else f"{verdict.quiet_seconds:.1f} s after the last fault"
    yield f"quiet: {quiet}"
    yield f"in use (and the rise by 1,000 jobs): {verdict.vitals}"
    if verdict.never_fired:
        yield f"NEVER FIRED: {', '.join(verdict.never_fired)}"
    for what in verdict.wrong[:MOST_SHOWN]:
        yield f"WRONG {what}"
    yield f"violations: {_counted(Counter(violation.invariant for violation in verdict.violations))}"
    for violation in verdict.violations[:MOST_SHOWN]:
        yield f"VIOLATION {violation}"
    yield "HELD" if verdict.passed else "BROKEN"


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
