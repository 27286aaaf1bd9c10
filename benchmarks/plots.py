"""Bars of a run's results, one picture a scenario: .venv-bench/bin/python -m benchmarks.plots FILE DIRECTORY"""
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHOWN = {
    "submission": "accepted jobs a second",
    "throughput": "jobs a second",
    "latency": "latency p50",
    "waiting": "seconds until all are inside",
    "crash": "seconds until all jobs move again",
    "goodput": "finished jobs a minute",
}
OURS_COLOUR, THEIR_COLOUR = "#1f6f8b", "#b0b7bd"


def bars_of(rounds: list[dict[str, Any]], what: str) -> list[tuple[str, list[float]]]:
    """By system, what each round gave."""
    return [(one["system"], one["values"]) for one in rounds if one["what"] == what]


def draw(scenario: str, rounds: list[dict[str, Any]], directory: Path) -> None:
    """Medians as bars, the least and the most as lines over them."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    bars = bars_of(rounds, SHOWN[scenario])
    unit = next(one["unit"] for one in rounds if one["what"] == SHOWN[scenario])
    figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.35 * len(bars)), layout="constrained")
    for place, (system, values) in enumerate(reversed(bars)):
        middle = sorted(values)[len(values) // 2]
        axes.barh(place, middle, color=OURS_COLOUR if system == "agentjobs" else THEIR_COLOUR)
        axes.plot([min(values), max(values)], [place, place], color="black", linewidth=1)
    axes.set_yticks(range(len(bars)), [system for system, _ in reversed(bars)])
    axes.set_title(f"{SHOWN[scenario]} ({unit}), n = {max(len(values) for _, values in bars)}", fontsize=10)
    figure.savefig(directory / f"{scenario}.svg", metadata={"Date": None})
    pyplot.close(figure)


def main(results: Path, directory: Path) -> None:
    """All scenarios that have something to show."""
    directory.mkdir(parents=True, exist_ok=True)
    for scenario, told in json.loads(results.read_text("utf-8"))["scenarios"].items():
        if scenario in SHOWN and bars_of(told["rounds"], SHOWN[scenario]):
            draw(scenario, told["rounds"], directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
