"""Reading the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07)."""

import re

from fastapi import Request

from agentjobs.api.problems import Problem

# A structured-field string (RFC 8941, section 3.3.3), quoted; bare visible ASCII is taken as well.
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")
LIMIT = 255


def idempotency_key(request: Request) -> str | None:
    """The caller's key, if there is one. Raises Problem 400 for a malformed one or for two."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = _unquoted(given[0].strip()) if len(given) == 1 else None
    if key is None or not 1 <= len(key) <= LIMIT:
        raise Problem(
            400,
            "malformed_idempotency_key",
            f'Give one Idempotency-Key of 1 to {LIMIT} printable ASCII characters, best in quotes: "...".',
        )
    return key


def _unquoted(value: str) -> str | None:
    if quoted := _QUOTED.fullmatch(value):
        return re.sub(r'\\(["\\])', r"\1", quoted[1])
    return value if _BARE.fullmatch(value) else None
