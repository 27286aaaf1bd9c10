"""Scenarios that are scripts of their own, with their own stacks: fairness over tenants, open event streams."""

from __future__ import annotations

import asyncio
import json
import sys

from benchmarks.peers.servers import Servers
from benchmarks.peers.system import CHECKOUT, System
from benchmarks.scenarios.scenario import Scenario, Sizes
from benchmarks.series import Value


def medians(printed: str) -> list[Value]:
    """What a script has printed: a table, an empty line, and the same as JSON. Raises ValueError without JSON."""
    figures = json.loads(printed.rpartition("\n\n")[2])
    return [Value(figure["what"], figure["unit"], figure["median"]) for figure in figures]


def _script(name: str, option: str) -> Scenario:
    async def measure(_: System, __: Servers, sizes: Sizes) -> list[Value]:
        size = (option, str(sizes.jobs)) if sizes.jobs else ()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"benchmarks.{name}", *size),
            cwd=CHECKOUT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            out, _err = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        if process.returncode:
            raise RuntimeError(f"python -m benchmarks.{name} ended with {process.returncode}")
        return medians(out.decode())

    return Scenario(name, measure, systems=("agentjobs",))


SCENARIOS = (_script("fairness", "--waiting"), _script("streams", "--streams"))
