"""How long to wait before the next attempt. Temporal has no jitter of its own, so the wait is ours."""

import math
from typing import Final

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
"""What came back up is used again within a minute."""

SHORTEST_WAIT_SECONDS: Final = 0.05  # zero would mean "use the retry policy's own interval" to Temporal

ASKED_WAIT_LIMIT_SECONDS: Final = 3600.0
"""A Retry-After beyond an hour is clamped: ask again then, rather than trust an absurd value."""


def wait_before_retry(attempt: int, *, asked_seconds: float | None, chance: float) -> float:
    """Seconds until the next attempt.

    attempt: the one that failed, counted from 1. asked_seconds: what the other side asked for.
    chance: uniform in [0, 1), given by the caller so that this stays pure.

    Without a request: exponential with full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter").
    With one: never earlier than asked, plus up to a tenth, so that those told the same moment spread out.
    """
    if asked_seconds is not None and not math.isnan(asked_seconds):
        asked = min(max(asked_seconds, SHORTEST_WAIT_SECONDS), ASKED_WAIT_LIMIT_SECONDS)
        return asked * (1 + chance / 10)
    ceiling = min(FIRST_WAIT_SECONDS * 2.0 ** min(attempt - 1, 30), LONGEST_WAIT_SECONDS)
    return max(ceiling * chance, SHORTEST_WAIT_SECONDS)
