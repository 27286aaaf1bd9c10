"""The table of a chaos session."""

from collections.abc import Sequence

from tests.chaos.play import Outcome

HEADINGS = ("boundary", "deed", "fired", "jobs", "quiet after", "violations")


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a run."""
    rows = [HEADINGS, *(_row(outcome) for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    passed = sum(outcome.passed for outcome in outcomes)
    return "\n".join([*lines, f"{passed} of {len(outcomes)} runs held every invariant", ""])


def _row(outcome: Outcome) -> tuple[str, ...]:
    quiet = "never" if outcome.quiet_seconds is None else f"{outcome.quiet_seconds:.1f} s"
    fired = "yes" if outcome.fired else "NEVER"
    return (outcome.boundary, outcome.deed, fired, str(outcome.jobs), quiet, str(len(outcome.violations)))
