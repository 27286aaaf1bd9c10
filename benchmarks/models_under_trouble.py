"""The whole stack with a model provider that misbehaves: what trouble costs. Figures as a table, then as JSON.

python -m benchmarks.models_under_trouble [NAME ...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from benchmarks import troubled_crowds, troubled_jobs
from benchmarks.figures import Figure, as_json, as_table
from tests.e2e.model_rig import CANARY, ModelRig, running_model_rig

Scenario = Callable[[ModelRig], Awaitable[list[Figure]]]


@dataclass(frozen=True)
class Setting:
    """One stack, and what is measured on it, in this order."""

    name: str
    scenarios: tuple[Scenario, ...]
    settings: dict[str, str] = field(default_factory=dict)


SETTINGS = (
    Setting(
        "one model",
        (
            troubled_jobs.ordinary,
            troubled_jobs.failing,
            troubled_jobs.cancelled,
            troubled_jobs.broken,
            troubled_jobs.malformed,
            troubled_jobs.refused,
            troubled_jobs.killed,
            troubled_crowds.outage,
            troubled_crowds.budget,
        ),
    ),
    Setting(
        "four calls at once",
        (troubled_crowds.rate_limited, troubled_crowds.calls_at_once),
        {"AGENTJOBS_MODEL_CALLS_AT_ONCE": "4"},
    ),
    Setting(
        "two models",
        (troubled_crowds.fallback, troubled_jobs.refused),
        {"AGENTJOBS_FALLBACK_MODELS": "openai-chat:second"},
    ),
)


async def measured(setting: Setting, chosen: Sequence[str]) -> list[Figure]:
    """The figures of one stack; of the scenarios named, or of all if none is."""
    scenarios = [one for one in setting.scenarios if not chosen or one.__name__ in chosen]
    if not scenarios:
        return []
    with tempfile.TemporaryDirectory(prefix="agentjobs-benchmark-") as home:
        async with running_model_rig(Path(home), 2, AGENTJOBS_LOG_LEVEL="DEBUG", **setting.settings) as rig:
            figures = [figure for one in scenarios for figure in await one(rig)]
            spilled = [float(CANARY in text) for text in rig.logged().values()]
    return [*figures, Figure.of(f"{setting.name}: logs with words of a request", "of 1", spilled)]


async def _main(chosen: Sequence[str]) -> None:
    figures = [figure for setting in SETTINGS for figure in await measured(setting, chosen)]
    sys.stdout.write(f"{as_table(figures)}\n\n{as_json(figures)}\n")


if __name__ == "__main__":
    names = sorted({one.__name__ for setting in SETTINGS for one in setting.scenarios})
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_main(options.parse_args().names))
