from datetime import UTC, datetime

import pytest

from agentjobs.commands.patience import asked_seconds
from agentjobs.commands.words import length_of, one_line
from tests.commands.fake_api import NOW


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain größe 日本 👩‍🚒", "plain größe 日本 👩‍🚒"),
        ("a\tb\nc\r\nd", "a b c  d"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b\x1b[31m[2Jx", "[2Jx"),
        ("\x9b2Jx\x85y", "xy"),
        ("\u202eabc\u2066d", "abcd"),
        ("a\ud800b", "ab"),
        ("\x1b", ""),
    ],
)
def test_what_a_terminal_obeys_is_gone(given: str, shown: str) -> None:
    assert one_line(given) == shown


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0s"), (0.4, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")]
)
def test_lengths_in_the_largest_fitting_unit(seconds: float, words: str) -> None:
    assert length_of(seconds) == words


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("3", 3.0),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 32 Mar 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert asked_seconds(header, NOW) == seconds
    assert datetime(2026, 3, 1, 12, tzinfo=UTC) == NOW
