"""How long to wait: jittered, bounded, and never earlier than asked."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.domain.waits import (
    ASKED_WAIT_LIMIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    SHORTEST_WAIT_SECONDS,
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

    assert asked <= wait <= max(asked, SHORTEST_WAIT_SECONDS) * 1.1


def test_those_who_were_told_the_same_moment_spread_out() -> None:
    waits = {wait_before_retry(1, asked_seconds=10, chance=chance / 10) for chance in range(10)}

    assert len(waits) == 10


@pytest.mark.parametrize("absurd", [-1.0, -1e300, 0.0, 1e9, 1e308, math.inf, math.nan])
def test_an_absurd_request_becomes_a_wait_that_temporal_can_take(absurd: float) -> None:
    wait = wait_before_retry(1, asked_seconds=absurd, chance=0.5)

    assert timedelta(0) < timedelta(seconds=wait) <= timedelta(seconds=ASKED_WAIT_LIMIT_SECONDS * 1.1)
