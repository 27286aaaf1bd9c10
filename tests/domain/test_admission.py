"""Which model is asked, what a call's end tells of its provider, and how a refusal is told."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentjobs.domain.admission import (
    FALLBACK,
    MINUTE_SECONDS,
    HeldBack,
    Hold,
    Limits,
    News,
    Trouble,
    choose,
    elsewhere,
    held_back,
    news,
    parking_seconds,
)
from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError

NOON = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
LATER = NOON + timedelta(minutes=1)
AWAY, BUSY, GONE = Category.UNAVAILABLE, Category.RATE_LIMITED, Category.NOT_FOUND
MODELS = ("a", "b", "c")

CHOICES = {
    "nothing happened yet": ((), {}, "a"),
    "the first is away": ((("a", AWAY),), {}, "b"),
    "the first was too slow": ((("a", Category.TIMEOUT),), {}, "b"),
    "the first is busy": ((("a", BUSY),), {}, "b"),
    "the first is retired": ((("a", GONE),), {}, "b"),
    "the first is parked": ((), {"a": NOON}, "b"),
    "the first two are out": ((("a", AWAY),), {"b": NOON}, "c"),
    "all failed once: the first again": ((("a", AWAY), ("b", BUSY), ("c", AWAY)), {}, "a"),
    "all failed, the first more often": ((("a", AWAY), ("b", BUSY), ("c", AWAY), ("a", AWAY)), {}, "b"),
    "all parked: the one that is free first": ((), {"a": LATER, "b": NOON, "c": LATER}, "b"),
    "all parked alike: the first": ((), dict.fromkeys(MODELS, NOON), "a"),
    "parked or failed: who failed can be asked now": ((("b", AWAY),), {"a": NOON, "c": NOON}, "b"),
    "a retired one comes last": ((("a", GONE), ("b", AWAY), ("c", AWAY)), {"b": NOON, "c": NOON}, "b"),
    "all are retired: the first": (tuple((model, GONE) for model in MODELS), {}, "a"),
    "what happened to a model that is no candidate": ((("z", AWAY),), {"z": NOON}, "a"),
}


@pytest.mark.parametrize(("failed", "parked", "chosen"), CHOICES.values(), ids=CHOICES)
def test_the_model_to_ask(
    failed: tuple[tuple[str, Category], ...], parked: dict[str, datetime], chosen: str
) -> None:
    assert choose(MODELS, failed, parked) == chosen


@pytest.mark.parametrize("category", Category)
def test_only_a_model_that_is_away_busy_or_retired_is_passed_over(category: Category) -> None:
    chosen = choose(MODELS, (("a", category),), {})

    assert chosen == ("b" if category in {AWAY, Category.TIMEOUT, BUSY, GONE} else "a")
    assert (chosen == "b") == (category in FALLBACK)


FAILED = st.lists(st.tuples(st.sampled_from([*MODELS, "z"]), st.sampled_from(Category)), max_size=8)
PARKED = st.dictionaries(st.sampled_from([*MODELS, "z"]), st.sampled_from([NOON, LATER]))


@given(st.lists(st.sampled_from(MODELS), min_size=1, max_size=3), FAILED, PARKED)
def test_there_is_always_one_choice_and_the_order_of_the_failures_does_not_matter(
    candidates: list[str], failed: list[tuple[str, Category]], parked: dict[str, datetime]
) -> None:
    chosen = choose(candidates, failed, parked)

    assert chosen in candidates
    assert choose(candidates, failed[::-1], parked) == chosen


@given(st.permutations(MODELS), FAILED, PARKED)
def test_a_model_without_trouble_is_preferred_to_all_with_trouble(
    candidates: list[str], failed: list[tuple[str, Category]], parked: dict[str, datetime]
) -> None:
    troubled = {model for model, category in failed if category in FALLBACK} | set(parked)
    free = [model for model in candidates if model not in troubled]

    chosen = choose(candidates, failed, parked)

    assert not free or chosen == free[0]


def test_without_a_candidate_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="name at least one"):
        choose((), (), {})


LIMITS = Limits(requests_per_minute=60, tokens_per_minute=1000, calls_at_once=1)


def _held(hold: Hold) -> HeldBack:
    trouble = Trouble(failures=5, latest=Category.TIMEOUT)
    return held_back("m-1", hold, LIMITS, until=NOON, wait_seconds=2.5, trouble=trouble)


FAILED_NOW = RetryableError(AWAY, "away")
ELSEWHERE = {
    "another one is free": (FAILED_NOW, (), {}, True),
    "the others are parked": (FAILED_NOW, (), {"b": NOON, "c": NOON}, False),
    "one of the others is free": (FAILED_NOW, (("b", AWAY),), {}, True),
    "the others failed before": (FAILED_NOW, (("b", AWAY), ("c", BUSY)), {}, False),
    "it is parked, another one is not": (_held(Hold.BROKEN), (), {}, True),
    "all are parked": (_held(Hold.PARKED), (), {"a": NOON, "b": LATER, "c": LATER}, False),
    "it only has no room at the moment": (_held(Hold.REQUESTS), (), {}, False),
    "its calls at once are taken": (_held(Hold.CALLS), (), {}, False),
    "it refused what was asked": (PermanentError(Category.CONTENT_REFUSED, "no"), (), {}, False),
}


@pytest.mark.parametrize(("error", "failed", "parked", "expected"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_next_attempt_need_not_wait_when_it_asks_a_model_without_trouble(
    error: JobError, failed: tuple[tuple[str, Category], ...], parked: dict[str, datetime], expected: bool
) -> None:
    assert elsewhere("a", error, MODELS, failed, parked) == expected


def test_with_a_single_candidate_there_is_no_elsewhere() -> None:
    assert not elsewhere("a", FAILED_NOW, ("a",), (), {})


def test_attempts_that_go_round_wait_from_the_second_round_on() -> None:
    failed: list[tuple[str, Category]] = []
    waits = []
    for _ in range(6):
        model = choose(MODELS, failed, {})
        waits.append(not elsewhere(model, FAILED_NOW, MODELS, failed, {}))
        failed.append((model, AWAY))

    assert waits == [False, False, True, True, True, True]


WORKS = {
    None,
    Category.INVALID_INPUT,
    Category.ACCESS_DENIED,
    Category.NOT_FOUND,
    Category.CONTENT_REFUSED,
    Category.UNKNOWN_TOOL,
    Category.BAD_OUTPUT,
    Category.PAYLOAD_TOO_LARGE,
}


@pytest.mark.parametrize("category", [None, *Category])
def test_what_the_end_of_a_call_tells(category: Category | None) -> None:
    told = news(category, retry_after_seconds=None)

    if category in WORKS:
        assert told is News.WORKS
    elif category in {AWAY, Category.TIMEOUT}:
        assert told is News.FAILS
    else:
        assert told is News.NOTHING


def test_a_429_with_a_time_says_that_the_model_is_full() -> None:
    assert news(BUSY, retry_after_seconds=3) is News.FULL
    assert news(AWAY, retry_after_seconds=3) is News.FAILS


@pytest.mark.parametrize(
    ("asked", "parked"),
    [(None, None), (math.nan, None), (-1, 0.05), (0, 0.05), (30, 30), (1e300, 3600), (math.inf, 3600)],
)
def test_a_parking_is_clamped_as_every_wait_is(asked: float | None, parked: float | None) -> None:
    assert parking_seconds(asked) == parked


MESSAGES = {
    Hold.PARKED: "is parked until 12:00:05 UTC, as its provider asked",
    Hold.BROKEN: "is parked until 12:00:05 UTC after 5 failures (timeout)",
    Hold.PROBED: "is tried by one call, until 12:00:05 UTC at most, after 5 failures (timeout)",
    Hold.CALLS: "has its 1 call at once",
    Hold.REQUESTS: "allows 60 requests a minute",
    Hold.TOKENS: "allows 1000 tokens a minute",
}


@pytest.mark.parametrize("hold", Hold)
def test_a_refusal_says_what_holds_the_call_back(hold: Hold) -> None:
    held = _held(hold)

    assert str(held) == f"held back: model m-1 {MESSAGES[hold]}"
    assert (held.category, held.retry_after_seconds, held.nothing_happened) == (BUSY, 2.5, True)
    assert held.parked == (hold in {Hold.PARKED, Hold.BROKEN, Hold.PROBED})


def test_a_limit_is_spread_over_a_minute_and_the_burst() -> None:
    limits = Limits(requests_per_minute=60, tokens_per_minute=1000)

    assert limits.request_seconds == MINUTE_SECONDS / 60
    assert limits.tokens_seconds(500) == MINUTE_SECONDS / 2
    assert (Limits().request_seconds, Limits().tokens_seconds(500)) == (None, None)


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute", "calls_at_once"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate({name: 0})
