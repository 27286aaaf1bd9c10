"""Reading the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07)."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from fastapi import Request

from agentjobs.api.problems import Problem

LIMIT = 255

# A structured-field string (RFC 8941, section 3.3.3), quoted; bare visible ASCII is taken as well.
PATTERN = (
    rf'^("([\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){{1,{LIMIT}}}"'
    rf"|[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{{1,{LIMIT}}})$"
)
_KEY = re.compile(PATTERN)


KEPT_FOR = timedelta(hours=24)
"""The least: a key whose job lives longer is kept as long as the job."""


def expiry_of(accepted_at: datetime) -> str:
    """Until when the key holds at least, as an HTTP date (RFC 9110, section 5.6.7): the same in every answer."""
    return format_datetime((accepted_at + KEPT_FOR).astimezone(UTC), usegmt=True)


def key_header(description: str) -> dict[str, Any]:
    """The header as the OpenAPI document tells it."""
    schema = {"type": "string", "pattern": PATTERN}
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": description,
        "schema": schema,
    }


def idempotency_key(request: Request) -> str | None:
    """The caller's key, if there is one. Raises Problem 400 for a malformed one or for two."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = given[0].strip(" \t")
    if len(given) > 1 or not _KEY.fullmatch(key):
        raise Problem(
            400,
            "malformed_idempotency_key",
            f'Give one Idempotency-Key of 1 to {LIMIT} printable ASCII characters, best in quotes: "...".',
        )
    return re.sub(r'\\(["\\])', r"\1", key[1:-1]) if key.startswith('"') else key
