"""The report on all dead letters in words, bars and a small chart."""

from collections.abc import Sequence
from typing import Final

from agentjobs.commands.render import Screen
from agentjobs.commands.report_answers import Report, ReportRow
from agentjobs.commands.words import length_of, time_of

REPORT_COLUMNS: Final = ("REASON", "OPEN", "", "AGENT", "VERSION", "OLDEST")
BAR_WIDTH: Final = 20
BLOCKS: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
ASCII_BLOCKS: Final = " .:-=+*%#"
_AGES: Final = (
    ("under_1_hour", "< 1 h"),
    ("under_1_day", "< 1 d"),
    ("under_7_days", "< 7 d"),
    ("older", "older"),
)


def report_rows(report: Report, screen: Screen) -> list[list[object]]:
    """The lines of `dead report`, the most frequent first."""
    most = max((row.count for row in report.open), default=1)
    ordered = sorted(report.open, key=lambda row: -row.count)
    return [_report_row(row, most, screen) for row in ordered]


def report_facts(report: Report, screen: Screen) -> list[tuple[str, object]]:
    """What stands under the lines: ages, what came and went, and what became of decisions."""
    ages = ", ".join(f"{report.ages[name]} {told}" for name, told in _AGES if report.ages.get(name))
    outcomes = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in report.outcomes.items() if count)
    return [
        ("letters", by_state_words(report)),
        ("ages", ages),
        ("oldest", None if report.oldest_at is None else time_of(report.oldest_at)),
        *_flow_facts(report, screen),
        ("decisions", outcomes),
        ("recovery", _recovery_words(report)),
    ]


def by_state_words(report: Report) -> str:
    """How many in which state."""
    return ", ".join(f"{count} {state}" for state, count in report.by_state.items())


def chart(counts: Sequence[int], most: int, blocks: str) -> str:
    """One character a count, by its share of `most`; what is more than nothing is never drawn as nothing."""
    top = len(blocks) - 1
    return "".join(blocks[-(-count * top // most)] if count else blocks[0] for count in counts)


def _flow_facts(report: Report, screen: Screen) -> list[tuple[str, object]]:
    came = [flow.died for flow in report.flow]
    went = [flow.redriven + flow.discarded for flow in report.flow]
    most = max([*came, *went], default=0)
    if not most or report.since is None:
        return []
    blocks = BLOCKS if _draws_blocks(screen) else ASCII_BLOCKS
    return [
        (f"by the {report.unit}", f"since {time_of(report.since)}, at most {most}"),
        ("died", f"|{chart(came, most, blocks)}| {sum(came)}"),
        ("decided", f"|{chart(went, most, blocks)}| {sum(went)}"),
    ]


def _recovery_words(report: Report) -> str | None:
    median, slow = report.recovery.median_seconds, report.recovery.p90_seconds
    if median is None or slow is None:
        return None
    return f"median {length_of(median)}, nine in ten within {length_of(slow)}"


def _report_row(row: ReportRow, most: int, screen: Screen) -> list[object]:
    character = screen.bar_character if _draws_blocks(screen) else "#"
    bar = character * max(1, round(BAR_WIDTH * row.count / max(most, 1)))
    return [row.reason, row.count, bar, row.agent, row.policy_version, screen.moment(row.oldest_at)]


def _draws_blocks(screen: Screen) -> bool:
    # What is piped ends in a file, a mail or another program.
    return screen.out.is_terminal and screen.out.encoding.startswith("utf")
