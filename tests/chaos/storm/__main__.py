"""`python -m tests.chaos.storm --help`: storms over a whole stack, and the verdict on each."""

import argparse
import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import combinations
from pathlib import Path

from tests.chaos.storm.campaign import Storm, Verdict, weather
from tests.chaos.storm.parts import OFFLINE, Mix
from tests.chaos.storm.schedule import Nemesis
from tests.chaos.storm.site import running_site
from tests.chaos.storm.telling import plan_told, verdict_told
from tests.chaos.storm.tenants import Keys, preparing

PER_MINUTE = 300


async def play(storm: Storm, mix: Mix, home: Path) -> Verdict:
    """On a site of its own, in this home."""
    (verdict,) = [verdict async for verdict in play_all([storm], mix, home)]
    return verdict


async def play_all(storms: Iterable[Storm], mix: Mix, home: Path) -> AsyncIterator[Verdict]:
    """One after the other over one site."""
    keys = Keys({})
    async with running_site(home, mix, preparing(keys)) as site:
        for storm in storms:
            site.mark_logs()
            for link in site.links.values():
                link.forget()
            yield await weather(site, keys, storm)


def main() -> int:
    """0 when everything held."""
    given = _given()
    storms = _storms(given)
    home = Path(tempfile.mkdtemp(prefix="agentjobs-storm-"))
    passed = asyncio.run(_told(storms, Mix(tracker=given.tracker, model=given.model), home))
    _tell(f"{passed} of {len(storms)} storms held every invariant; logs: {home}")
    return 0 if passed == len(storms) else 1


async def _told(storms: Sequence[Storm], mix: Mix, home: Path) -> int:
    for storm in storms:
        _tell(plan_told(storm))
    passed = 0
    async for verdict in play_all(storms, mix, home):
        _tell(verdict_told(verdict))
        passed += verdict.passed
    return passed


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


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    code = main()
    os._exit(code)  # the Temporal client may crash the interpreter at its end (sdk-python 300)
