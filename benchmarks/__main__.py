"""`python -m benchmarks --help`: ours beside what a user would pick instead, on the same machine and servers."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from benchmarks import results
from benchmarks.peers import environment
from benchmarks.peers.servers import running_servers
from benchmarks.peers.system import PEERS_PYTHON, System
from benchmarks.peers.systems import OURS, SYSTEMS
from benchmarks.rounds import Outcome, played
from benchmarks.scenarios import crash, elsewhere, goodput, latency, redrive, submission, throughput, waiting
from benchmarks.scenarios.scenario import Scenario, Sizes

MODULES = (submission, throughput, latency, waiting, crash, goodput, redrive)
SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario for scenario in (*(module.SCENARIO for module in MODULES), *elsewhere.SCENARIOS)
}
ROUNDS = 3
INTERRUPTED = 130
OUT = Path(".agentjobs/bench")


async def run(given: argparse.Namespace) -> Path:
    """All that was asked for, over one set of servers. Returns the file, which is written after each scenario."""
    about: dict[str, Any] = {"machine": results.machine(), "rounds": given.rounds, "systems": {}}
    outcomes: list[Outcome] = []
    chosen = {name: systems_of(SCENARIOS[name], given.systems) for name in given.only}
    if any(system.is_peer for systems in chosen.values() for system in systems) and not environment.is_ready():
        await environment.make()
    with tempfile.TemporaryDirectory(prefix="agentjobs-bench-", ignore_cleanup_errors=True) as home:
        async with running_servers(Path(home)) as servers:
            for name, systems in chosen.items():
                about["systems"] |= {one.name: await results.described(one) for one in systems}
                outcome = await played(
                    SCENARIOS[name], systems, given.rounds, servers, Sizes(given.jobs, given.seconds)
                )
                results.tell(outcome)
                outcomes.append(outcome)
                path = results.write(given.out, given.name, results.document(outcomes, about))
    if environment.is_ready():
        await environment.carried_out(
            str(PEERS_PYTHON), "-m", "benchmarks.plots", str(path.resolve()), str(given.out.resolve())
        )
    return path


def systems_of(scenario: Scenario, named: Sequence[str] | None) -> list[System]:
    """Those that were named; ours alone where a scenario is about nobody else."""
    is_ours_alone = scenario.systems == (OURS.name,)
    return [SYSTEMS[name] for name in (scenario.systems if is_ours_alone or not named else named)]


def parsed() -> argparse.Namespace:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks")
    options.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="SCENARIO")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, metavar="SYSTEM", help=", ".join(SYSTEMS))
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--jobs", type=int, help="instead of each scenario's own number")
    options.add_argument("--seconds", type=float, help="of a model call, where one waits")
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument("--name", default="bench", help="of the file with the results")
    return options.parse_args()


def main() -> int:
    """0 when all rounds were played."""
    given = parsed()
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left then either
    try:
        path = asyncio.run(run(given))
    except KeyboardInterrupt:
        return INTERRUPTED
    sys.stdout.write(f"\nresults: {path}\n")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the Temporal client may crash the interpreter at its end (sdk-python 300)
