"""What the other side asks for when it says "later"."""

from datetime import UTC, datetime

import pytest

from agentjobs.domain.retry_after import LONGEST_READ_SECONDS, asked_seconds

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
IN_A_MINUTE = "Thu, 01 Jan 2026 12:01:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "5"}, 5),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3),
        ({"retry-after": IN_A_MINUTE}, 60),
        ({"retry-after": "Thu, 01 Jan 2026 12:01:00"}, 60),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e999"}, LONGEST_READ_SECONDS),
        ({"retry-after": "999999"}, 999_999),
    ],
)
def test_seconds_milliseconds_and_dates_are_read(headers: dict[str, str], seconds: float) -> None:
    assert asked_seconds(headers, NOW) == seconds


def test_a_date_is_compared_with_the_other_sides_own_clock() -> None:
    headers = {"retry-after": IN_A_MINUTE, "date": "Thu, 01 Jan 2026 12:00:50 GMT"}

    assert asked_seconds(headers, NOW) == 10


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"retry-after": ""},
        {"retry-after": "soon"},
        {"retry-after": "NaN"},
        {"retry-after": "Thu, 99 Foo 2026"},
    ],
)
def test_what_cannot_be_read_asks_for_nothing(headers: dict[str, str]) -> None:
    assert asked_seconds(headers, NOW) is None
