"""Which model to ask, how fast models may be asked, and what the end of a call tells about its provider.

What holds for all workers at one moment, the ledger decides (queries/admission.sql): here is what it goes by.

Rates are metered by the generic cell rate algorithm in its virtual scheduling form (ITU-T I.371): what is kept is
the time up to which all that was admitted fills the steady rate, and a call conforms when that is at most a burst
ahead.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, assert_never

from pydantic import Field

from agentjobs.domain.failures import Category, JobError, RetryableError
from agentjobs.domain.job import Frozen
from agentjobs.domain.waits import ASKED_WAIT_LIMIT_SECONDS, SHORTEST_WAIT_SECONDS

BURST_SECONDS: Final = 3.0
"""How far ahead of the steady rate calls may be: jobs come in batches, and should not wait for each other while
there is room. Short, since what it allows at once is taken from the steady rate (5 percent).
"""

MINUTE_SECONDS: Final = 60.0 + BURST_SECONDS
"""A limit is spread over this long, so that burst and steady rate together keep within it in any 60 seconds."""

FAILURES_TO_OPEN: Final = 5
"""In a row, of all jobs together: one job's bad luck is no outage, and an outage has this many within moments."""

OPEN_SECONDS: Final = 5.0
"""A provider's restart or a lost route is often over by then. Doubled each time that the probe fails."""

LONGEST_OPEN_SECONDS: Final = 60.0
"""One probe a minute burdens nobody, and what came back up is used again within a minute."""

PROBE_SECONDS: Final = 30.0
"""Most answers are there by then. Afterwards another probe may go, whatever became of the first."""

PLACE_SECONDS: Final = 0.05
"""The least between the places of two that are held back: twenty a second come again, not thousands at once."""

ROUND_SECONDS: Final = 60.0
"""How long the line of places is before it begins anew: nobody is told to wait longer for having come late."""

CALL_TIME_WEIGHT: Final = 0.2
"""Of the latest call in the running mean of how long calls take: the last dozen decide."""

FALLBACK: Final = frozenset({Category.UNAVAILABLE, Category.TIMEOUT, Category.RATE_LIMITED, Category.NOT_FOUND})
"""The model is away, busy or retired, and another one may not be. Every other failure is about what was asked, who
asks, or what it may cost: no other model is the answer to it.
"""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Limits(Frozen):
    """What a provider allows for one model, all callers together. None: no limit.

    Any 60 seconds take at most `requests_per_minute` calls. Of tokens they take at most the limit and what the
    last call in them reserved: a call larger than the burst could never be let through otherwise.
    """

    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000_000)] | None = None
    calls_at_once: Annotated[int, Field(ge=1, le=100_000)] | None = None

    @property
    def request_seconds(self) -> float | None:
        """How much of the time one request takes up."""
        return None if self.requests_per_minute is None else MINUTE_SECONDS / self.requests_per_minute

    def tokens_seconds(self, tokens: int) -> float | None:
        """How much of the time so many tokens take up."""
        return None if self.tokens_per_minute is None else tokens * MINUTE_SECONDS / self.tokens_per_minute


class Hold(StrEnum):
    """What holds a call back."""

    PARKED = "parked"
    BROKEN = "broken"
    PROBED = "probed"
    CALLS = "calls"
    REQUESTS = "requests"
    TOKENS = "tokens"


class HeldBack(RetryableError):
    """The model was not asked. Come again after `retry_after_seconds`; or, when it is `parked`, ask another."""

    def __init__(self, hold: Hold, message: str, *, wait_seconds: float) -> None:
        super().__init__(
            Category.RATE_LIMITED, message, retry_after_seconds=max(wait_seconds, 0.0), nothing_happened=True
        )
        self.hold = hold

    @property
    def has_own_place(self) -> bool:  # type: ignore[override]
        """A place in the line for a slot; of a parked model all are told the same moment."""
        return not self.parked

    @property
    def parked(self) -> bool:
        """Whether `Admission.parked` names the model now, so that `choose` passes it over."""
        return self.hold in {Hold.PARKED, Hold.BROKEN, Hold.PROBED}


class Trouble(Frozen):
    """Failures in a row of a model's provider, and the category of the latest."""

    failures: Annotated[int, Field(ge=0)] = 0
    latest: Category | None = None


def held_back(
    model: str, hold: Hold, limits: Limits, *, until: datetime, wait_seconds: float, trouble: Trouble
) -> HeldBack:
    """The refusal, in words that are safe to show. until: when the hold itself ends."""
    return HeldBack(
        hold, f"held back: model {model} {_reason(hold, limits, until, trouble)}", wait_seconds=wait_seconds
    )


def _reason(hold: Hold, limits: Limits, until: datetime, trouble: Trouble) -> str:
    match hold:
        case Hold.PARKED:
            return f"is parked until {_time(until)}, as its provider asked"
        case Hold.BROKEN:
            return f"is parked until {_time(until)} after {_after(trouble)}"
        case Hold.PROBED:
            return f"is tried by one call, until {_time(until)} at most, after {_after(trouble)}"
        case Hold.CALLS:
            return f"has its {_counted(limits.calls_at_once, 'call')} at once"
        case Hold.REQUESTS:
            return f"allows {_counted(limits.requests_per_minute, 'request')} a minute"
        case Hold.TOKENS:
            return f"allows {_counted(limits.tokens_per_minute, 'token')} a minute"
        case unreachable:
            assert_never(unreachable)


def _after(trouble: Trouble) -> str:
    return f"{_counted(trouble.failures, 'failure')} ({trouble.latest})"


def _counted(number: int | None, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"


class News(StrEnum):
    """What the end of a call tells about the model's provider."""

    WORKS = "works"
    FAILS = "fails"
    FULL = "full"
    """It asked everybody to wait, and said how long."""

    NOTHING = "nothing"


def news(category: Category | None, *, retry_after_seconds: float | None = None) -> News:
    """What a call's end tells. None: it succeeded.

    A refusal of what was asked is an answer: the provider works. What this side decided (a passed deadline, a bug)
    tells nothing, and neither does a 429 without a time.
    """
    match category:
        case Category.UNAVAILABLE | Category.TIMEOUT:
            return News.FAILS
        case Category.RATE_LIMITED:
            return News.NOTHING if parking_seconds(retry_after_seconds) is None else News.FULL
        case (
            None
            | Category.INVALID_INPUT
            | Category.ACCESS_DENIED
            | Category.NOT_FOUND
            | Category.CONTENT_REFUSED
            | Category.UNKNOWN_TOOL
            | Category.BAD_OUTPUT
            | Category.PAYLOAD_TOO_LARGE
        ):
            return News.WORKS
        case (
            Category.KEY_CONFLICT
            | Category.BUDGET_EXCEEDED
            | Category.DEADLINE_EXCEEDED
            | Category.RETRIES_EXHAUSTED
            | Category.OUTCOME_UNKNOWN
            | Category.COMPENSATION_FAILED
            | Category.WORKFLOW_STUCK
            | Category.TERMINATED
            | Category.BUG
        ):
            return News.NOTHING
        case unreachable:
            assert_never(unreachable)


def parking_seconds(asked: float | None) -> float | None:
    """For how long a 429 parks its model: as asked, within the bounds of every wait. None: not at all."""
    if asked is None or math.isnan(asked):
        return None
    return min(max(asked, SHORTEST_WAIT_SECONDS), ASKED_WAIT_LIMIT_SECONDS)


def choose(
    candidates: Sequence[str], failed: Sequence[tuple[str, Category]], parked: Mapping[str, datetime]
) -> str:
    """The model to ask: the first candidate, unless a later one has better prospects.

    candidates: at least one, the preferred one first. failed: (model, category) of this step's attempts so far, in
    any order; only the categories of FALLBACK count against a model. parked: which ones nobody should ask now, and
    until when (aware).

    Better prospects has, in this order: who is not known to be retired; who is free, or is so sooner; who failed
    less often; who comes first. So with all of them tried once and none parked it is the first again. Raises
    ValueError without a candidate.
    """
    if not candidates:
        raise ValueError("there is no model to choose from: name at least one")

    def prospects(model: str) -> tuple[bool, datetime, int]:
        against = _against(model, failed)
        return Category.NOT_FOUND in against, parked.get(model, _NEVER), len(against)

    return min(candidates, key=prospects)


def elsewhere(
    model: str,
    error: JobError,
    candidates: Sequence[str],
    failed: Sequence[tuple[str, Category]],
    parked: Mapping[str, datetime],
) -> bool:
    """Whether the attempt after this failure of `model` asks another one in no trouble, and so need not wait.

    failed and parked: as for `choose`, without this failure. Where all are in trouble, attempts wait: they would
    otherwise go round in moments until none is left.
    """
    if isinstance(error, HeldBack) and not error.parked:
        return False
    known = (*failed, (model, error.category))
    chosen = choose(candidates, known, parked)
    return chosen != model and chosen not in parked and not _against(chosen, known)


def _against(model: str, failed: Sequence[tuple[str, Category]]) -> list[Category]:
    return [category for name, category in failed if name == model and category in FALLBACK]
