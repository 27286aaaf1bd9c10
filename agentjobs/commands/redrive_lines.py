"""Bulk redrives in words."""

from typing import Final

from agentjobs.commands.redrive_answers import BulkRedrive, Doubt, Items, RedriveTried
from agentjobs.commands.render import Screen
from agentjobs.commands.words import compact, counted, time_of

REDRIVE_COLUMNS: Final = ("ID", "STATE", "ASKED", "LETTERS", "CREATED", "BY", "NOTE")
KIND_COLUMNS: Final = ("REASON", "LETTERS", "AGENT")
DOUBT_COLUMNS: Final = ("IN DOUBT", "UNSAFE", "REASON", "STEPS")
BAR_WIDTH: Final = 30


def redrive_row(redrive: BulkRedrive, screen: Screen) -> list[object]:
    """One line of `redrives list`."""
    return [
        redrive.id,
        redrive.state,
        redrive.asked,
        redrive.letters,
        screen.moment(redrive.created_at),
        redrive.created_by,
        redrive.note,
    ]


def doubt_row(doubt: Doubt) -> list[object]:
    """One line of what a dry run says of effects in doubt."""
    return [doubt.id, "yes" if doubt.unsafe else "no", doubt.reason, ", ".join(doubt.steps)]


def redrive_facts(redrive: BulkRedrive) -> list[tuple[str, object]]:
    """All that `redrives show` shows beside the progress."""
    approval = redrive.approval
    return [
        ("id", redrive.id),
        ("state", redrive.state),
        ("stage", redrive.stage),
        ("stopped because", redrive.stopped_because),
        ("letters", redrive.letters),
        ("passed over", ", ".join(f"{count} {why}" for why, count in redrive.skipped.items())),
        ("filter", compact(redrive.filter or {})),
        ("policy", redrive.policy),
        ("pace", _pace_words(redrive)),
        ("created", redrive.created_at and time_of(redrive.created_at)),
        ("created by", redrive.created_by),
        ("note", redrive.note),
        ("approved by", approval.by or ("nobody yet" if approval.needed else None)),
        ("approval note", approval.note),
        ("finished", redrive.finished_at and time_of(redrive.finished_at)),
        ("Temporal UI", redrive.links.get("temporal_ui")),
    ]


def progress_words(redrive: BulkRedrive, bar_character: str) -> str:
    """How far it has come, as a bar and in numbers."""
    items = redrive.items or Items()
    touched = redrive.letters - items.waiting
    full = BAR_WIDTH * touched // max(redrive.letters, 1)
    bar = bar_character * full + "." * (BAR_WIDTH - full)
    named = ", ".join(_named(items))
    return f"[{bar}] {touched} of {redrive.letters}" + (f": {named}" if named else "")


def tried_lines(tried: RedriveTried) -> list[str]:
    """What a dry run says beside its tables."""
    left = tried.left_out
    done = ", ".join(f"{tool} {count}" for tool, count in tried.effects_done.items())
    told = [
        f"{counted(tried.letters, 'letter')} would be redriven",
        f"done already, and not repeated: {done}" if done else "",
        f"left out, since they would die again of an effect in doubt: {left.in_doubt}" if left.in_doubt else "",
        f"left out, in another bulk redrive: {left.in_another_redrive}" if left.in_another_redrive else "",
        f"left out, beyond the limit of one bulk redrive: {left.beyond_limit}" if left.beyond_limit else "",
        "a second person would have to approve it" if tried.needs_approval else "",
    ]
    return [line for line in told if line]


def _named(items: Items) -> list[str]:
    names = ("recovered", "died_again", "cancelled", "asked", "no_verdict", "not_taken", "skipped", "waiting")
    return [f"{count} {name.replace('_', ' ')}" for name in names if (count := getattr(items, name))]


def _pace_words(redrive: BulkRedrive) -> str | None:
    if redrive.canary is None or redrive.share is None or redrive.failure_limit is None:
        return None
    return (
        f"{redrive.canary} first, then {redrive.share:.0%}, then the rest; {redrive.rate_per_second:g} a second; "
        f"stops above {redrive.failure_limit:.0%} failures"
    )
