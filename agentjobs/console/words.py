"""Values in words, for templates."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SHORT: Final = (("d", 86_400), ("h", 3_600), ("min", 60))
_RECEIPT_LIMIT: Final = 500


def moment(at: datetime) -> str:
    """A point in time, to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def relative(at: datetime, now: datetime) -> str:
    """How far away a moment is: `3 minutes ago`, `in 20 seconds`."""
    seconds = round((at - now).total_seconds())
    if abs(seconds) < 2:
        return "now"
    length = _long(abs(seconds))
    return f"in {length}" if seconds > 0 else f"{length} ago"


def length(seconds: float) -> str:
    """A length of time, short: `80 ms`, `2.5 s`, `45 s`, `3 min`, `5 h`."""
    if 0 < seconds < 1:
        return f"{max(1, round(seconds * 1_000))} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, size in _SHORT:
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def time_tag(at: datetime | None, now: datetime) -> Markup | str:
    """The moment for machines, the distance for people, and the moment again for a pointer that rests on it."""
    if at is None:
        return "\u2013"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.astimezone(UTC).isoformat(timespec="seconds"), moment(at), relative(at, now)
    )


def usd(amount: Decimal) -> str:
    """Money, with as many places as it takes to see something."""
    places = 2 if amount == 0 or amount >= 1 else 6
    return f"${amount:,.{places}f}"


def grouped(number: int) -> str:
    """1 234 567, with narrow spaces that do not break."""
    return f"{number:,}".replace(",", "\u202f")


def plain(number: float) -> str:
    """Without places that say nothing: `10`, `0.5`."""
    return f"{number:g}"


def spoken(name: object) -> str:
    """An identifier of ours as words: `retry_wait` is `retry wait`."""
    return str(name).replace("_", " ")


def compact(value: Any) -> str:
    """A value on one line, not endless."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _RECEIPT_LIMIT else text[: _RECEIPT_LIMIT - 1] + "…"


def told(details: dict[str, Any]) -> str:
    """Names and values that say something: `policy: original, letters: 6`."""
    said = {name: told(value) if isinstance(value, dict) else value for name, value in details.items()}
    return ", ".join(f"{spoken(name)}: {compact(value)}" for name, value in said.items() if value)


def web_address(value: object) -> str | None:
    """The value, if it is an address that a link may lead to: no other scheme does nothing when it is clicked."""
    text = str(value)
    return text if text.startswith(("https://", "http://")) and len(text) < 2_000 else None


def short_id(value: str) -> str:
    """Enough of an id to tell it from its neighbours."""
    return value if len(value) <= 13 else value[:8]


def _long(seconds: int) -> str:
    for unit, size in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return "a moment"


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "moment": moment,
    "time_tag": time_tag,
    "length": length,
    "usd": usd,
    "grouped": grouped,
    "plain": plain,
    "spoken": spoken,
    "compact": compact,
    "told": told,
    "web_address": web_address,
    "short_id": short_id,
}
