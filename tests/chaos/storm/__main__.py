"""`python -m tests.chaos.storm --help`: storms over a whole stack, and the verdict on each."""

import argparse
import os
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from tests.chaos.storm.campaign import Storm, Verdict, weather
from tests.chaos.storm.parts import OFFLINE, Mix
from tests.chaos.storm.programs import home_for, run, tell
from tests.chaos.storm.schedule import Nemesis
from tests.chaos.storm.site import running_site
from tests.chaos.storm.telling import plan_told, verdict_told
from tests.chaos.storm.tenants import Keys, preparing

PER_MINUTE = 300


async def play(storm: Storm, mix: Mix, home: Path) -> Verdict:
    """On a site of its own, in this home."""
    (verdict,) = [verdict async for verdict in play_all([storm], mix, home)]
    return verdict


async def play_all(storms: Sequence[Storm], mix: Mix, home: Path) -> AsyncGenerator[Verdict]:
    """One after the other over one site. Raises StackError where clocks are to jump and cannot."""
    keys = Keys({})
    mix = replace(mix, clocks_jump=any(Nemesis.CLOCK_JUMP in storm.nemeses for storm in storms))
    async with running_site(home, mix, preparing(keys)) as site:
        for storm in storms:
            site.mark_logs()
            for link in site.links.values():
                link.forget()
            yield await weather(site, keys, storm)


def main() -> int:
    """0 when everything held."""
    given = _given()
    return run(_told(_storms(given), Mix(tracker=given.tracker, model=given.model)))


async def _told(storms: Sequence[Storm], mix: Mix) -> int:
    for storm in storms:
        tell(plan_told(storm))
    passed = 0
    with home_for("storm") as home:
        async with aclosing(play_all(storms, mix, home)) as verdicts:
            async for verdict in verdicts:
                tell(verdict_told(verdict))
                passed += verdict.passed
    tell(f"{passed} of {len(storms)} storms held every invariant; logs: {home}")
    return 0 if passed == len(storms) else 1


def _storms(given: argparse.Namespace) -> list[Storm]:
    seed = given.seed or secrets.token_hex(4)
    kinds = [Nemesis(name) for name in given.only] if given.only is not None else list(Nemesis)
    seconds = given.minutes * 60
    jobs = given.jobs or round(given.minutes * PER_MINUTE)
    groups = list(combinations(kinds, given.together)) if given.together else [tuple(kinds)]
    return [
        Storm(f"{seed}-{number}" if given.seeds > 1 else seed, seconds, jobs, group)
        for group in groups
        for number in range(given.seeds)
    ]


def _given() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", help="plays the same schedule again")
    options.add_argument("--minutes", type=float, default=10.0, help="of faults; quiescence comes after them")
    options.add_argument("--jobs", type=int, help=f"in this time; {PER_MINUTE} a minute unless said")
    options.add_argument("--only", nargs="*", choices=[nemesis.value for nemesis in Nemesis], help="these kinds")
    options.add_argument("--together", type=int, help="not all kinds at once: each alone (1), each pair (2)")
    options.add_argument("--seeds", type=int, default=1, help="so many storms of each")
    options.add_argument("--tracker", default="roundup", choices=["roundup", "postgres"])
    options.add_argument("--model", default="openai-chat:double", choices=["openai-chat:double", OFFLINE])
    return options.parse_args()


if __name__ == "__main__":
    os._exit(main())  # the Temporal client may crash the interpreter at its end (sdk-python 300)
