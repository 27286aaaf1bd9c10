"""What may cross a boundary as JSON: checked once, before an effect is completed.

A value that Temporal or PostgreSQL cannot take would fail the attempt after the effect is done, and repeat it
(results), or wedge the workflow for ever (arguments). So it is refused here, with its own reason.
"""

import json
import math
from typing import Final

from pydantic import JsonValue

from agentjobs.domain.failures import Category, PermanentError

RESULT_LIMIT_BYTES: Final = 256 * 1024
"""Far below Temporal's 2 MiB for a payload: several values share one history."""

DEPTH_LIMIT: Final = 64
INTEGER_LIMIT: Final = 2**53
"""Beyond it JSON readers disagree on the value (RFC 8259, section 6)."""


def checked(value: object, *, limit_bytes: int = RESULT_LIMIT_BYTES) -> JsonValue:
    """The value as plain JSON, equal after a round trip.

    Raises PermanentError(bad_output) for what JSON, PostgreSQL or Temporal cannot represent, and
    PermanentError(payload_too_large) beyond `limit_bytes` of UTF-8.
    """
    _check_shape(value)
    try:
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
        decoded: JsonValue = json.loads(encoded)
    except (TypeError, ValueError, RecursionError):
        raise PermanentError(Category.BAD_OUTPUT, "a value has no JSON form") from None
    if len(encoded) > limit_bytes:
        raise PermanentError(
            Category.PAYLOAD_TOO_LARGE, f"a value has {len(encoded)} bytes; {limit_bytes} is the limit"
        )
    return decoded


def require_finite(value: object) -> None:
    """Raises PermanentError(bad_output) when NaN or an infinity is anywhere in plain Python data."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number:
                _require(math.isfinite(number), "a number is NaN or infinite")
            case dict() as members:
                waiting.extend(members.values())
            case list() | tuple() | set() | frozenset() as items:
                waiting.extend(items)


def _check_shape(value: object) -> None:
    # Iterative, so that a value nested 100,000 deep ends in a refusal and not in a RecursionError.
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > DEPTH_LIMIT:
            raise PermanentError(Category.BAD_OUTPUT, f"a value is nested deeper than {DEPTH_LIMIT} levels")
        waiting.extend((part, depth + 1) for part in _parts(item))


def _parts(item: object) -> list[object]:
    match item:
        case None | bool() | float():
            return []
        case int():
            _require(-INTEGER_LIMIT < item < INTEGER_LIMIT, "an integer is beyond 2**53")
            return []
        case str():
            _require("\x00" not in item, "a text has a NUL character")
            return []
        case dict():
            _require(all(isinstance(key, str) for key in item), "an object has a key that is no text")
            return [*item.keys(), *item.values()]
        case list():
            return item
        case _:
            raise PermanentError(Category.BAD_OUTPUT, f"a {type(item).__name__} is no JSON value")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise PermanentError(Category.BAD_OUTPUT, otherwise)
