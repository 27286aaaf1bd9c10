"""Many jobs due at once: `python -m tests.chaos.storm.herd [--jobs N] [--outage SECONDS]`.

They are accepted while Temporal is away, and all due in the moment in which it is back.
"""

import argparse
import asyncio
import os
import secrets
import time
from pathlib import Path

from tests.chaos.storm.campaign import Storm, Verdict, weather
from tests.chaos.storm.deeds import Done
from tests.chaos.storm.judge_log import read_log
from tests.chaos.storm.parts import Mix
from tests.chaos.storm.programs import home_for, run, tell
from tests.chaos.storm.site import Site, running_site
from tests.chaos.storm.telling import verdict_told
from tests.chaos.storm.tenants import ADMIN, TENANTS, Keys, preparing

LOOKS = 500
LOOK_SECONDS = 0.1


async def _status_times(site: Site, key: str) -> list[float]:
    """How long the API takes for a page of jobs, again and again."""
    client = site.client([], key)
    times = []
    for _ in range(LOOKS):
        began = time.monotonic()
        await client.state("no-such-job")
        times.append(time.monotonic() - began)
        await asyncio.sleep(LOOK_SECONDS)
    await client.close()
    return sorted(times)


def most_calls_at_once(site: Site) -> int:
    """Model calls in flight, by the model's own log."""
    running = most = 0
    for line in read_log(site.parts.log_of("model")):
        running += 1 if line["event"] == "asked" else -1
        most = max(most, running)
    return most


async def play(storm: Storm, home: Path) -> tuple[Verdict, list[float], int]:
    """The verdict, sorted times of the API while the herd is worked off, and the most model calls at once."""
    keys, times = Keys({}), []

    async def outage(site: Site, _: Done) -> None:
        await site.stack.stop_child("temporal")
        await asyncio.sleep(storm.seconds + 1)
        await site.stack.start_child("temporal")
        times.extend(await _status_times(site, keys.of[TENANTS[0], ADMIN]))

    async with running_site(home, Mix(), preparing(keys)) as site:
        verdict = await weather(site, keys, storm, outage)
        return verdict, times, most_calls_at_once(site)


def main() -> int:
    """0 when everything held."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=1_000)
    options.add_argument("--outage", type=float, default=60.0)
    options.add_argument("--seed")
    return run(_told(options.parse_args()))


async def _told(given: argparse.Namespace) -> int:
    storm = Storm(given.seed or secrets.token_hex(4), given.outage, given.jobs, ())
    with home_for("herd") as home:
        verdict, times, most = await play(storm, home)
    median, worst = times[len(times) // 2], times[int(len(times) * 0.99)]
    told = f"status: n={len(times)}, median {median * 1000:.0f} ms, p99 {worst * 1000:.0f} ms"
    tell(f"{verdict_told(verdict)}\n{told}; model calls at once: at most {most}\nlogs: {home}")
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    os._exit(main())  # the Temporal client may crash the interpreter at its end (sdk-python 300)
