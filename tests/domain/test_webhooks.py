"""What a receiver's answer means, and when a delivery is tried again."""

import pytest

from agentjobs.domain.webhooks import (
    ATTEMPTS,
    RETRY_SECONDS,
    THROTTLE_SECONDS,
    Answer,
    throttle_after,
    wait_after,
)


def test_deliveries_follow_the_schedule_of_the_standard_with_jitter_and_end() -> None:
    middle = [wait_after(attempts, chance=0.5) for attempts in range(1, ATTEMPTS + 1)]

    assert middle == [*RETRY_SECONDS, None]
    assert wait_after(1, chance=0.0) == pytest.approx(4)
    assert wait_after(1, chance=0.999) == pytest.approx(6, abs=0.01)


def test_a_longer_wait_that_the_sink_asks_for_is_kept_up_to_a_day() -> None:
    asked = [wait_after(1, chance=0.5, asked_seconds=seconds) for seconds in (1, 60, 10**9)]

    assert asked == [5, 60, 86_400]
    assert wait_after(ATTEMPTS, chance=0.5, asked_seconds=1) is None


@pytest.mark.parametrize(
    ("status", "success", "gone", "slower"),
    [
        (200, True, False, False),
        (204, True, False, False),
        (299, True, False, False),
        (300, False, False, False),
        (302, False, False, False),
        (400, False, False, False),
        (410, False, True, False),
        (429, False, False, True),
        (500, False, False, False),
        (502, False, False, True),
        (503, False, False, True),
        (504, False, False, True),
    ],
)
def test_only_2xx_is_success_and_some_say_more_than_no(
    status: int, success: bool, gone: bool, slower: bool
) -> None:
    answer = Answer(status=status)

    assert (answer.is_success, answer.is_gone, answer.asks_to_slow_down) == (success, gone, slower)


def test_a_webhook_that_says_slower_is_left_alone_for_as_long_as_it_asks_up_to_a_day() -> None:
    asked = [throttle_after(Answer(status=429, asked_seconds=seconds), 5) for seconds in (0, 60, 10**9)]

    assert asked == [0, 60, 86_400]


def test_a_webhook_that_does_not_say_how_long_is_left_alone_for_minutes_at_most() -> None:
    waits = [throttle_after(Answer(status=503), wait) for wait in (5.0, 36_000.0, None)]

    assert waits == [5, THROTTLE_SECONDS, THROTTLE_SECONDS]
    assert [throttle_after(answer, 5) for answer in (None, Answer(status=500, asked_seconds=60))] == [0, 0]
