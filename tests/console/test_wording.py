"""Small words: times, amounts, addresses, bars, and what an attempt has written."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from agentjobs.api.letter_schemas import FlowShown
from agentjobs.console import words
from agentjobs.console.charts import HEIGHT, columns, share
from agentjobs.console.timeline import text_so_far
from agentjobs.domain.events import EventType
from agentjobs.ledger.records import EventRecord

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "now"),
        (-1, "now"),
        (-59, "59 seconds ago"),
        (-60, "1 minute ago"),
        (-7_300, "2 hours ago"),
        (-200_000, "2 days ago"),
        (30, "in 30 seconds"),
        (86_400, "in 1 day"),
    ],
)
def test_a_moment_is_told_by_its_distance(seconds: int, told: str) -> None:
    assert words.relative(NOW + timedelta(seconds=seconds), NOW) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.08, "80 ms"),
        (0.0001, "1 ms"),
        (2.54, "2.5 s"),
        (45, "45 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_300, "2 h"),
    ],
)
def test_a_length_is_short(seconds: float, told: str) -> None:
    assert words.length(seconds) == told


@pytest.mark.parametrize(("amount", "told"), [("0", "$0.00"), ("0.000395", "$0.000395"), ("1234.5", "$1,234.50")])
def test_money_shows_as_many_places_as_say_something(amount: str, told: str) -> None:
    assert words.usd(Decimal(amount)) == told


@pytest.mark.parametrize(
    "value", ["javascript:alert(1)", "data:text/html,x", " https://x", "//x", 7, None, {"a": 1}]
)
def test_only_addresses_of_the_web_are_links(value: object) -> None:
    assert words.web_address(value) is None


def test_columns_are_measured_by_the_tallest() -> None:
    flow = [FlowShown(at=NOW, died=died, redriven=1, discarded=1) for died in (4, 0)]

    drawn = columns(flow)

    assert [(one.died_height, one.decided_height) for one in drawn] == [(HEIGHT, HEIGHT / 2), (0, HEIGHT / 2)]
    assert columns([]) == []


@pytest.mark.parametrize(("part", "whole", "hundredths"), [(1, 4, 25), (9, 4, 100), (1, 0, 0)])
def test_a_share_stays_within_its_bar(part: float, whole: float, hundredths: float) -> None:
    assert share(part, whole) == hundredths


def text(attempt: int, piece: str) -> tuple[str, dict[str, Any]]:
    return EventType.TEXT, {"attempt_id": attempt, "text": piece}


@pytest.mark.parametrize(
    ("events", "written"),
    [
        ([text(1, "a"), text(1, "b")], "ab"),
        ([text(1, "a"), (EventType.RETRY_SCHEDULED, {"attempt_id": 1})], ""),
        ([text(1, "a"), (EventType.DIED, {})], ""),
        ([text(1, "a"), (EventType.ATTEMPT_STARTED, {"attempt_id": 2}), text(2, "b")], "b"),
        ([text(1, "a"), text(2, "b")], "b"),
        ([text(1, "a"), (EventType.CANCEL_REQUESTED, {}), text(1, "b")], "ab"),
    ],
)
def test_what_was_written_counts_only_for_its_attempt(
    events: list[tuple[str, dict[str, Any]]], written: str
) -> None:
    records = [EventRecord(seq=seq, type=kind, data=data, at=NOW) for seq, (kind, data) in enumerate(events, 1)]

    assert text_so_far(records) == written
