"""Reading the header traceparent (W3C Trace Context, section 3.2)."""

import re

from fastapi import Request

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}(?P<later>-.*)?"
)
_NO_TRACE = "0" * 32
_NO_PARENT = "0" * 16


def trace_id_of(request: Request) -> str | None:
    """The caller's trace id: 32 hexadecimal digits. None without a valid header: then a new trace begins."""
    given = request.headers.getlist("traceparent")
    told = _TRACEPARENT.fullmatch(given[0].strip(" \t")) if len(given) == 1 else None
    if told is None or not _may_be(told["version"], told["later"]):
        return None
    return None if told["trace"] == _NO_TRACE or told["parent"] == _NO_PARENT else told["trace"]


def _may_be(version: str, later: str | None) -> bool:
    # Version 00 ends after the flags; a later one may go on, and is read as far as it is known here.
    return version != "ff" and (version != "00" or later is None)
