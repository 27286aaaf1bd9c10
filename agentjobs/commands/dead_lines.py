"""A dead letter in words, and the report on all of them."""

from datetime import datetime
from typing import Final

from agentjobs.commands.answers import DeadLetter, Report, ReportRow, Spent
from agentjobs.commands.job_lines import amount_words
from agentjobs.commands.render import Screen
from agentjobs.commands.words import compact, time_of

DEAD_COLUMNS: Final = ("ID", "STATE", "REASON", "DIED", "STEP", "AGENT", "MESSAGE")
REPORT_COLUMNS: Final = ("REASON", "OPEN", "", "AGENT", "VERSION", "OLDEST")
SPENT_COLUMNS: Final = ("SPENT ON", "MODEL", "ATTEMPTS", "TOKENS IN", "OUT", "USD", "HELD BACK")
BAR_WIDTH: Final = 20


def dead_row(letter: DeadLetter, screen: Screen) -> list[object]:
    """One line of `dead list`."""
    return [
        letter.id,
        letter.state,
        letter.reason,
        screen.moment(letter.died_at),
        letter.step,
        letter.agent,
        letter.message,
    ]


def dead_facts(letter: DeadLetter) -> list[tuple[str, object]]:
    """All that `dead show` shows: what somebody needs to decide."""
    times = {name: None if moment is None else time_of(moment) for name, moment in _moments(letter)}
    return [
        ("id", letter.id),
        ("state", letter.state),
        ("reason", letter.reason),
        ("category", letter.category),
        ("message", letter.message),
        ("step", letter.step),
        ("deaths", letter.generation),
        ("attempts", _item_by_item(letter.attempts)),
        ("effects done", _item_by_item(letter.effects_done)),
        ("effects in doubt", _item_by_item(letter.effects_in_doubt)),
        ("agent", " ".join(filter(None, (letter.agent, letter.policy_version)))),
        ("worker", letter.worker),
        ("origin", letter.origin),
        ("review id", letter.review_id),
        *times.items(),
        ("resolved by", letter.resolved_by),
        ("note", letter.note),
        ("Temporal UI", letter.links.get("temporal_ui")),
        ("input", letter.input.text if letter.input else None),
    ]


def spent_row(spent: Spent) -> list[object]:
    """One line of what `dead show` says was spent on what."""
    return [
        spent.step,
        spent.model,
        spent.attempts,
        spent.tokens_in,
        spent.tokens_out,
        spent.usd or None,
        amount_words(spent.tokens_reserved, spent.usd_reserved),
    ]


def report_rows(report: Report, screen: Screen) -> list[list[object]]:
    """The lines of `dead report`, the most frequent first."""
    most = max((row.count for row in report.open), default=1)
    ordered = sorted(report.open, key=lambda row: -row.count)
    return [_report_row(row, most, screen) for row in ordered]


def by_state_words(report: Report) -> str:
    """How many in which state."""
    return ", ".join(f"{count} {state}" for state, count in report.by_state.items())


def _report_row(row: ReportRow, most: int, screen: Screen) -> list[object]:
    bar = screen.bar_character * max(1, round(BAR_WIDTH * row.count / max(most, 1)))
    return [row.reason, row.count, bar, row.agent, row.policy_version, screen.moment(row.oldest_at)]


def _moments(letter: DeadLetter) -> tuple[tuple[str, datetime | None], ...]:
    return ("died", letter.died_at), ("alerted", letter.alerted_at), ("resolved", letter.resolved_at)


def _item_by_item(value: object) -> str | None:
    """A list with one item a line."""
    if value is None or value == []:
        return None
    items = value if isinstance(value, list) else [value]
    return "\n".join(compact(item) for item in items)
