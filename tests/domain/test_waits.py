"""Whether another attempt follows, and after how long: jittered, bounded, and never earlier than asked."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.domain.admission import Hold, Limits, Trouble, held_back
from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectKind
from agentjobs.domain.failures import (
    RETRYABLE,
    Category,
    JobError,
    MalformedReply,
    PermanentError,
    RetryableError,
)
from agentjobs.domain.waits import (
    ASKED_WAIT_LIMIT_SECONDS,
    ATTEMPT_LIMITS,
    LONGEST_WAIT_SECONDS,
    MALFORMED_LIMIT,
    SHORTEST_WAIT_SECONDS,
    Tried,
    Verdict,
    judge,
    wait_before_retry,
)

CHANCES = st.floats(min_value=0, max_value=1, exclude_max=True)
ATTEMPTS = st.integers(min_value=1, max_value=10**9)


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 1), (2, 2), (3, 4), (4, 8), (6, 32), (7, 60), (1000, 60)])
def test_the_wait_doubles_up_to_a_minute(attempt: int, ceiling: float) -> None:
    almost_one = math.nextafter(1, 0)

    assert wait_before_retry(attempt, asked_seconds=None, chance=almost_one) == pytest.approx(ceiling)
    assert wait_before_retry(attempt, asked_seconds=None, chance=0.5) == ceiling / 2


@given(ATTEMPTS, CHANCES)
def test_a_wait_of_our_own_is_never_zero_and_never_above_a_minute(attempt: int, chance: float) -> None:
    wait = wait_before_retry(attempt, asked_seconds=None, chance=chance)

    assert SHORTEST_WAIT_SECONDS <= wait <= LONGEST_WAIT_SECONDS


def test_the_jitter_is_full() -> None:
    waits = [wait_before_retry(4, asked_seconds=None, chance=tenth / 10) for tenth in range(1, 10)]

    assert waits == pytest.approx([0.8 * tenth for tenth in range(1, 10)])


@given(ATTEMPTS, st.floats(min_value=0, max_value=ASKED_WAIT_LIMIT_SECONDS), CHANCES)
def test_we_never_come_back_earlier_than_asked(attempt: int, asked: float, chance: float) -> None:
    wait = wait_before_retry(attempt, asked_seconds=asked, chance=chance)

    asked = max(asked, SHORTEST_WAIT_SECONDS)
    assert asked <= wait <= asked + max(asked / 10, LONGEST_WAIT_SECONDS)


def test_those_who_were_told_the_same_moment_spread_out() -> None:
    waits = {wait_before_retry(1, asked_seconds=10, chance=chance / 10) for chance in range(10)}

    assert len(waits) == 10


def test_those_who_are_told_again_and_again_spread_out_wider() -> None:
    latest = [wait_before_retry(failed, asked_seconds=1, chance=0.999) for failed in (1, 2, 4, 6, 50)]

    assert latest == pytest.approx([2, 3, 9, 33, 61], abs=0.1)


@pytest.mark.parametrize("absurd", [-1.0, -1e300, 0.0, 1e9, 1e308, math.inf, math.nan])
def test_an_absurd_request_becomes_a_wait_that_temporal_can_take(absurd: float) -> None:
    wait = wait_before_retry(1, asked_seconds=absurd, chance=0.5)

    assert timedelta(0) < timedelta(seconds=wait) <= timedelta(seconds=ASKED_WAIT_LIMIT_SECONDS * 1.1 + 60)


NOW = datetime(2025, 1, 1, tzinfo=UTC)
BUSY = RetryableError(Category.RATE_LIMITED, "busy", retry_after_seconds=30)
DOWN = RetryableError(Category.UNAVAILABLE, "down")
NONE_BEFORE = Tried()
MALFORMED = MalformedReply("subject: missing", paid=Usage())


def judged(
    error: JobError,
    tried: Tried = NONE_BEFORE,
    *,
    kind: EffectKind | None = EffectKind.MODEL,
    deadline_at: datetime | None = None,
    elsewhere: bool = False,
) -> Verdict:
    """The verdict on an attempt that failed of this at NOW."""
    return judge(
        error, "plan", kind=kind, tried=tried, deadline_at=deadline_at, now=NOW, chance=0.5, elsewhere=elsewhere
    )


@pytest.mark.parametrize("kind", EffectKind)
def test_the_last_attempt_gives_up_and_says_so(kind: EffectKind) -> None:
    limit = ATTEMPT_LIMITS[kind]

    verdicts = [judged(DOWN, Tried(counted=before), kind=kind) for before in range(limit + 1)]

    assert all(verdict.wait_seconds is not None for verdict in verdicts[: limit - 1])
    assert [(v.wait_seconds, v.failure.category, v.failure.reason) for v in verdicts[limit - 1 :]] == [
        (None, Category.UNAVAILABLE, Category.RETRIES_EXHAUSTED)
    ] * 2


def test_waits_that_were_asked_for_use_up_no_attempt() -> None:
    verdict = judged(BUSY, Tried(counted=5, rate_limited=10_000))

    assert verdict.wait_seconds is not None
    assert verdict.failure.reason is Category.RATE_LIMITED


def test_a_malformed_reply_is_asked_again_at_once_and_a_bounded_number_of_times() -> None:
    verdicts = [judged(MALFORMED, Tried(counted=5, malformed=before)) for before in range(MALFORMED_LIMIT)]

    assert [verdict.wait_seconds for verdict in verdicts] == [SHORTEST_WAIT_SECONDS] * 2 + [None]
    assert {verdict.failure.reason for verdict in verdicts} == {Category.BAD_OUTPUT}


def test_outside_of_an_attempt_only_the_deadline_is_a_limit() -> None:
    verdict = judged(DOWN, Tried(counted=10**6), kind=None)

    assert verdict.wait_seconds is not None
    assert verdict.wait_seconds <= LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    ("seconds_left", "retried"), [(29.0, False), (30.0, False), (33.1, True), (3600.0, True), (-1.0, False)]
)
def test_no_attempt_is_scheduled_for_after_the_deadline(seconds_left: float, retried: bool) -> None:
    verdict = judged(BUSY, deadline_at=NOW + timedelta(seconds=seconds_left))

    reason = Category.RATE_LIMITED if retried else Category.DEADLINE_EXCEEDED
    assert (verdict.failure.category, verdict.failure.reason) == (Category.RATE_LIMITED, reason)
    assert (verdict.wait_seconds is not None) == retried


def test_an_attempt_that_asks_another_model_need_not_wait_for_this_one() -> None:
    verdict = judged(BUSY, elsewhere=True)

    assert verdict.wait_seconds == SHORTEST_WAIT_SECONDS


@pytest.mark.parametrize("category", sorted(set(Category) - RETRYABLE))
def test_a_permanent_failure_is_judged_by_its_category_alone(category: Category) -> None:
    verdict = judged(PermanentError(category, "no"))

    assert (verdict.failure.category, verdict.failure.reason, verdict.wait_seconds) == (category, category, None)


@pytest.mark.parametrize("category", sorted(RETRYABLE))
def test_a_retryable_failure_waits_longer_each_time(category: Category) -> None:
    error = RetryableError(category, "x")

    waits = [judged(error, Tried(counted=before, rate_limited=before)).wait_seconds for before in (0, 1, 2, 4)]

    assert waits == [0.5, 1, 2, 8]


def test_only_a_model_that_is_gone_is_mended_by_another_one() -> None:
    gone = judged(PermanentError(Category.NOT_FOUND, "retired"), elsewhere=True)
    refused = judged(PermanentError(Category.CONTENT_REFUSED, "no"), elsewhere=True)

    assert (gone.wait_seconds, refused.wait_seconds) == (SHORTEST_WAIT_SECONDS, None)


def test_who_has_a_place_of_its_own_in_the_line_comes_exactly_then() -> None:
    limits = Limits(calls_at_once=1)
    place = held_back("m", Hold.CALLS, limits, until=NOW, wait_seconds=0.2, trouble=Trouble())
    parked = held_back("m", Hold.PARKED, limits, until=NOW, wait_seconds=30, trouble=Trouble())

    waits = [judged(error, Tried(rate_limited=50)).wait_seconds for error in (place, parked)]

    assert waits == [0.2, 60]
