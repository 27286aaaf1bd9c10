"""What is kept of a run: figures, with what they were measured on."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.figures import Figure, as_table
from benchmarks.peers.system import System
from benchmarks.peers.systems import OURS as OUR_SYSTEM
from benchmarks.peers.systems import OURS_SHORT
from benchmarks.rounds import Outcome

OURS = (OUR_SYSTEM.name, OURS_SHORT.name)

VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
def told(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
print(json.dumps({name: told(name) for name in sys.argv[1:]}))
"""


def machine() -> dict[str, Any]:
    """Where this runs, and how busy that is."""
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


async def versions_of(system: System) -> dict[str, str | None]:
    """Of its packages, as they are installed."""
    process = await asyncio.create_subprocess_exec(
        *(system.python, "-c", VERSIONS, *system.packages), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    versions: dict[str, str | None] = json.loads(out)
    return versions


async def described(system: System) -> dict[str, Any]:
    """What somebody needs to measure it again."""
    return {
        "versions": await versions_of(system),
        "settings": dict(system.settings),
        "processes": {name: " ".join(argv) for name, argv in system.processes.items()},
        "documentation": system.documentation,
        "remarks": system.remarks,
    }


def document(outcomes: Sequence[Outcome], about: dict[str, Any]) -> dict[str, Any]:
    """Everything, as JSON has it."""
    return {**about, "scenarios": {outcome.scenario.name: _told(outcome) for outcome in outcomes}}


def _told(outcome: Outcome) -> dict[str, Any]:
    series = outcome.series
    return {
        "figures": [asdict(figure) for figure in series.figures()],
        "ratios": [asdict(figure) for figure in ratios_of(outcome)],
        "rounds": [
            {"what": what, "unit": unit, "system": system, "values": [round(value, 4) for value in values]}
            for (what, unit), of_systems in series.values.items()
            for system, values in of_systems.items()
        ],
        "missing": outcome.missing,
    }


def ratios_of(outcome: Outcome) -> list[Figure]:
    """Ours, in each of its settings, to all others."""
    return [figure for ours in OURS for figure in outcome.series.ratios(outcome.scenario.compared, ours)]


def write(out: Path, name: str, told: dict[str, Any]) -> Path:
    """The file."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.json"
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return path


def tell(outcome: Outcome) -> None:
    """A table on the terminal."""
    figures = [*outcome.series.figures(), *ratios_of(outcome)]
    table = as_table(figures) if figures else "nothing was measured"
    missing = "".join(f"\nnot measured: {system}: {why}" for system, why in outcome.missing.items())
    sys.stdout.write(f"\n{outcome.scenario.name}\n{table}{missing}\n")
    sys.stdout.flush()
