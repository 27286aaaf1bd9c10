"""Whether another attempt follows a failed one, and after how long. Temporal has no jitter of its own, and would
count every wait as an attempt: so both are ours.
"""

import math
from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import (
    Category,
    Failure,
    JobError,
    MalformedReply,
    PermanentError,
    RetryableError,
    failure,
)
from agentjobs.domain.job import Frozen

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
"""What came back up is used again within a minute."""

SHORTEST_WAIT_SECONDS: Final = 0.05  # zero would mean "use the retry policy's own interval" to Temporal

ASKED_WAIT_LIMIT_SECONDS: Final = 3600.0
"""A Retry-After beyond an hour is clamped: ask again then, rather than trust an absurd value."""

ATTEMPT_LIMITS: Final = {
    # With these waits: two minutes of trouble in a model call, four in a tool, a quarter of an hour in an undo.
    EffectKind.MODEL: 6,
    EffectKind.TOOL: 8,
    EffectKind.UNDO: 20,
}
"""How many attempts of a step may fail or crash in one run. Waits that the other side asked for are not counted:
they are bounded by the job's deadline. Attempts before a redrive are not counted either.
"""

MALFORMED_LIMIT: Final = 3
"""How often a model is asked for a reply that it does not manage to give in its declared form. Each is paid for.
"""


class Tried(Frozen):
    """The attempts of this step, in this run of the job, before the present one."""

    counted: Annotated[int, Field(ge=0)] = 0
    """Failed or crashed, without those below."""

    rate_limited: Annotated[int, Field(ge=0)] = 0
    malformed: Annotated[int, Field(ge=0)] = 0


class Verdict(Frozen):
    """What follows from a failed attempt: a wait in seconds, or None: no attempt follows."""

    failure: Failure
    wait_seconds: float | None


def judge(
    error: JobError,
    step: str,
    *,
    kind: EffectKind | None,
    tried: Tried,
    deadline_at: datetime | None,
    now: datetime,
    chance: float,
    elsewhere: bool = False,
) -> Verdict:
    """Wait and try again, or give up: by category, by attempts left, by the job's deadline.

    kind: of the effect; None outside of an attempt (a record, or a ledger that does not answer), where no limit
    but the deadline holds. chance: uniform in [0, 1), given by the caller so that this stays pure. elsewhere: the
    next attempt asks another model, so it need not wait for this one.
    """
    given_up = _given_up(error, kind, tried, elsewhere=elsewhere)
    if given_up is not None:
        return Verdict(failure=failure(error.category, str(error), step, reason=given_up), wait_seconds=None)
    wait = SHORTEST_WAIT_SECONDS if elsewhere else _wait(error, tried, chance)
    if deadline_at is not None and now + timedelta(seconds=wait) >= deadline_at:
        over = failure(error.category, str(error), step, reason=Category.DEADLINE_EXCEEDED)
        return Verdict(failure=over, wait_seconds=None)
    return Verdict(failure=failure(error.category, str(error), step), wait_seconds=wait)


def _given_up(error: JobError, kind: EffectKind | None, tried: Tried, *, elsewhere: bool) -> Category | None:
    """The reason, if no attempt follows."""
    if isinstance(error, PermanentError) and not (elsewhere and error.category is Category.NOT_FOUND):
        return error.category  # (a model that is not there any more is the one thing that another model mends)
    if isinstance(error, MalformedReply):
        return Category.BAD_OUTPUT if tried.malformed + 1 >= MALFORMED_LIMIT else None
    if kind is None or error.category is Category.RATE_LIMITED:
        return None
    return Category.RETRIES_EXHAUSTED if tried.counted + 1 >= ATTEMPT_LIMITS[kind] else None


def _wait(error: JobError, tried: Tried, chance: float) -> float:
    if isinstance(error, MalformedReply):
        return SHORTEST_WAIT_SECONDS  # nothing is in trouble: the model is told what was wrong, and asked again
    if isinstance(error, RetryableError) and error.has_own_place and error.retry_after_seconds is not None:
        return min(max(error.retry_after_seconds, SHORTEST_WAIT_SECONDS), ASKED_WAIT_LIMIT_SECONDS)
    before = tried.rate_limited if error.category is Category.RATE_LIMITED else tried.counted
    asked = error.retry_after_seconds if isinstance(error, RetryableError) else None
    return wait_before_retry(before + 1, asked_seconds=asked, chance=chance)


def wait_before_retry(failed: int, *, asked_seconds: float | None, chance: float) -> float:
    """Seconds until the next attempt.

    failed: how many have failed so, this one included. asked_seconds: what the other side asked for. chance:
    uniform in [0, 1).

    Without a request: exponential with full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter"). With
    one: never earlier than asked. What is added spreads out those that were told the same moment, wider each time.
    """
    ceiling = min(FIRST_WAIT_SECONDS * 2.0 ** min(max(failed, 1) - 1, 30), LONGEST_WAIT_SECONDS)
    if asked_seconds is None or math.isnan(asked_seconds):
        return max(ceiling * chance, SHORTEST_WAIT_SECONDS)
    asked = min(max(asked_seconds, SHORTEST_WAIT_SECONDS), ASKED_WAIT_LIMIT_SECONDS)
    return asked + chance * max(asked / 10, ceiling)
