"""Start and stop, again and again: `python -m tests.chaos.storm.cycles [--cycles N]`. Nothing may be left."""

import argparse
import os
import tempfile
from pathlib import Path

import psutil

from agentjobs.stack.ports import is_free
from tests.chaos.storm.parts import Mix
from tests.chaos.storm.programs import run, tell
from tests.chaos.storm.site import running_site
from tests.chaos.storm.tenants import Keys, preparing

CYCLES = 15


async def cycle(home: Path) -> list[str]:
    """What is left of one: processes and ports."""
    async with running_site(home, Mix(), preparing(Keys({}))) as site:
        pids, ports = site.stack.info.pids, site.parts.ports
        below = [child for pid in pids.values() for child in psutil.Process(pid).children(recursive=True)]
    left = [f"process {name}" for name, pid in pids.items() if psutil.pid_exists(pid)]
    left += [f"process below: {child.pid}" for child in below if child.is_running()]
    return left + [f"port of {name}" for name, port in ports.items() if not is_free(port)]


async def cycles(count: int) -> list[str]:
    """What was left, of all cycles; descriptors of this process are counted from the second cycle on."""
    left: list[str] = []
    counted = []
    for number in range(1, count + 1):
        with tempfile.TemporaryDirectory(prefix="agentjobs-cycle-") as home:
            left += [f"cycle {number}: {what}" for what in await cycle(Path(home))]
        counted.append(psutil.Process().num_fds())
        tell(f"cycle {number}: {counted[-1]} descriptors, {len(left)} left behind")
    return left


def main() -> int:
    """0 when nothing was left."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cycles", type=int, default=CYCLES)
    return run(_told(options.parse_args().cycles))


async def _told(count: int) -> int:
    left = await cycles(count)
    tell("\n".join([*left, f"{len(left)} things left behind"]))
    return 1 if left else 0


if __name__ == "__main__":
    os._exit(main())  # the Temporal client may crash the interpreter at its end (sdk-python 300)
