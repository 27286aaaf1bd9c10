"""Text for people. What comes from the API was written by somebody else, so nothing in it may steer a terminal."""

import json
import re
import unicodedata
from datetime import UTC, datetime
from typing import Final

# Whole sequences first, so that "\x1b[31mred" leaves "red" and not "[31mred".
_ESCAPE_SEQUENCE: Final = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # title, clipboard, links
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor, clearing
    r"|\x1b[ -/]*[0-~]"
)
# Unassigned and private characters draw at worst a box; these hide, reorder or break lines.
_HARMFUL_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_BIDI_CONTROLS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def one_line(text: str) -> str:
    """The text on one line, without anything that a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(_harmless(character) for character in _ESCAPE_SEQUENCE.sub("", text))


def lines(text: str) -> list[str]:
    """The text line by line, each as `one_line` gives it."""
    return [one_line(line) for line in text.split("\n")]


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def time_of(moment: datetime) -> str:
    """A point in time, to the second, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def length_of(seconds: float) -> str:
    """A length of time in its largest fitting unit: 9s, 3m, 5h, 2d."""
    whole = max(0, round(seconds))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def ahead_words(moment: datetime, now: datetime) -> str:
    """A moment, and how far it is ahead."""
    return f"{time_of(moment)} (in {length_of((moment - now).total_seconds())})"


def compact(value: object) -> str:
    """A JSON value on one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def counted(count: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _harmless(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    if unicodedata.category(character) in _HARMFUL_CATEGORIES or character in _BIDI_CONTROLS:
        return ""
    return character
