"""What the other side asks for when it says "later", from the headers of its answer."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_READ_SECONDS = 10 * 365 * 86_400.0
"""Beyond this it is no time any more: clamped here, and to something sensible by whoever waits (waits.py)."""


def asked_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the other side asks us to wait, never negative; None when it asks for nothing that can be read.

    headers: with names in lower case. now: our clock, for an HTTP-date when the answer has no Date of its own.

    `retry-after-ms` (milliseconds; OpenAI, Azure) is more exact than `Retry-After`: seconds or an HTTP-date (RFC
    9110, section 10.2.3). A date is compared with the other side's own clock, so that ours need not agree with it.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _clamped(milliseconds / 1000)
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None:
        return _clamped(seconds)
    until = http_date(asked)
    if until is None:
        return None
    return _clamped((until - (http_date(headers.get("date")) or now)).total_seconds())


def http_date(text: str | None) -> datetime | None:
    """The moment that an HTTP-date names; None for anything else."""
    try:
        at = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _number(text: str | None) -> float | None:
    try:
        number = float((text or "").strip())
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _clamped(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_READ_SECONDS)
