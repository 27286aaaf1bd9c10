"""What comes next in a bulk redrive."""

from typing import Any

import pytest
from pydantic import ValidationError

from agentjobs.domain import bulk
from agentjobs.domain.bulk import Ask, Counts, End, Over, Pace, RedriveState, Stage, Standing, StopReason, Wait


def pace(**changes: Any) -> Pace:
    known = {"letters": 100, "canary": 2, "share": 0.1, "rate_per_second": 5.0, "failure_limit": 0.2}
    return Pace.model_validate({**known, **changes})


def standing(state: RedriveState = RedriveState.RUNNING, **changes: Any) -> Standing:
    """With the verdicts of these counts; all of them are among the latest."""
    counts = Counts(**{name: count for name, count in changes.items() if name in Counts.model_fields})
    others = {name: value for name, value in changes.items() if name not in Counts.model_fields}
    lately = {"lately_decided": min(counts.decided, 20), "lately_failed": min(counts.failed, 20)}
    return Standing(state=state, counts=counts, **{**lately, **others})


def test_it_begins_with_the_canary() -> None:
    assert bulk.next_of(pace(), standing(waiting=100)) == Ask(up_to=2, rest_seconds=0.4)


@pytest.mark.parametrize("counts", [{"asked": 2}, {"asked": 1, "recovered": 1}, {"asked": 1, "no_verdict": 1}])
def test_nothing_follows_before_the_canary_has_its_verdicts(counts: dict[str, Any]) -> None:
    assert isinstance(bulk.next_of(pace(), standing(waiting=98, **counts)), Wait)


def test_the_share_follows_the_canary_and_the_rest_the_share() -> None:
    following = [
        bulk.next_of(pace(rate_per_second=50), standing(waiting=98, recovered=2)),
        bulk.next_of(pace(rate_per_second=50), standing(waiting=88, recovered=11, asked=1)),
        bulk.next_of(pace(rate_per_second=50), standing(waiting=88, recovered=12)),
    ]

    assert following == [Ask(up_to=12, rest_seconds=0.2), Wait(seconds=1), Ask(up_to=62, rest_seconds=1)]


def test_in_the_rest_nobody_waits_for_verdicts() -> None:
    assert bulk.next_of(pace(), standing(waiting=50, recovered=12, asked=38)) == Ask(up_to=55, rest_seconds=1)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0.5, Ask(up_to=13, rest_seconds=2)),
        (1, Ask(up_to=13, rest_seconds=1)),
        (3.5, Ask(up_to=15, rest_seconds=3 / 3.5)),
    ],
)
def test_the_rate_is_kept(rate: float, expected: Ask) -> None:
    assert bulk.next_of(pace(rate_per_second=rate), standing(waiting=88, recovered=12)) == expected


@pytest.mark.parametrize(
    "counts",
    [
        {"died_again": 1, "asked": 1, "canary_failed": 1},
        {"recovered": 70, "died_again": 1, "canary_failed": 1},  # it came late
    ],
)
def test_any_failure_of_the_canary_stops_it(counts: dict[str, Any]) -> None:
    stopped = End(state=RedriveState.STOPPED, because=StopReason.CANARY_FAILED)

    assert bulk.next_of(pace(), standing(waiting=20, **counts)) == stopped


@pytest.mark.parametrize(
    ("counts", "because"),
    [
        ({"recovered": 3, "died_again": 1, "asked": 1}, None),  # four verdicts say little
        ({"recovered": 4, "died_again": 1, "asked": 1}, None),  # exactly the limit
        ({"recovered": 3, "died_again": 2, "asked": 1}, StopReason.TOO_MANY_FAILED),
        ({"recovered": 3, "not_taken": 2, "asked": 1}, StopReason.TOO_MANY_FAILED),
        ({"recovered": 3, "died_again": 1, "cancelled": 1, "no_verdict": 9, "asked": 1}, None),
        (
            {"recovered": 80, "died_again": 6, "lately_decided": 20, "lately_failed": 6},
            StopReason.TOO_MANY_FAILED_LATELY,
        ),
        ({"recovered": 80, "died_again": 6, "lately_decided": 20, "lately_failed": 4}, None),
    ],
)
def test_more_failures_than_the_limit_stop_it(counts: dict[str, Any], because: StopReason | None) -> None:
    assert bulk.stopped_because(pace(), standing(waiting=10, **counts)) is because


def test_at_the_end_of_a_stage_few_verdicts_are_judged_too() -> None:
    few: dict[str, Any] = {"recovered": 2, "died_again": 1}

    assert bulk.stopped_because(pace(letters=10), standing(waiting=7, **few)) is StopReason.TOO_MANY_FAILED
    assert bulk.stopped_because(pace(letters=10), standing(waiting=6, asked=1, **few)) is None


def test_without_tolerance_the_fifth_verdict_may_not_be_a_failure() -> None:
    assert bulk.stopped_because(pace(failure_limit=0), standing(waiting=9, recovered=4, died_again=1, asked=1))


def test_with_full_tolerance_only_the_canary_stops_it() -> None:
    tolerant = pace(failure_limit=1)

    assert bulk.stopped_because(tolerant, standing(waiting=9, recovered=1, died_again=50)) is None


@pytest.mark.parametrize("last", [{}, {"asked": 3}])
def test_it_ends_when_no_letter_waits_and_all_have_their_verdict(last: dict[str, Any]) -> None:
    following = bulk.next_of(pace(), standing(recovered=90, skipped=7, **last))

    assert following == (Wait(seconds=1) if last else End(state=RedriveState.COMPLETED))


def test_letters_that_are_passed_over_do_not_count_as_canary() -> None:
    assert bulk.next_of(pace(), standing(waiting=90, skipped=10)) == Ask(up_to=2, rest_seconds=0.4)


def test_looks_in_vain_become_rarer() -> None:
    waits = [bulk.next_of(pace(), standing(waiting=98, asked=2), looks) for looks in range(8)]

    assert [wait.seconds for wait in waits if isinstance(wait, Wait)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("state", [RedriveState.PAUSED, RedriveState.AWAITING_APPROVAL])
def test_one_that_is_held_waits_whatever_has_become_of_its_letters(state: RedriveState) -> None:
    following = bulk.next_of(pace(), standing(state, waiting=3, died_again=9, canary_failed=1))

    assert following == Wait(seconds=bulk.PAUSED_LOOK_SECONDS)


@pytest.mark.parametrize("state", sorted(bulk.FINAL))
def test_one_that_has_ended_is_over(state: RedriveState) -> None:
    assert bulk.next_of(pace(), standing(state, waiting=3)) == Over()


@pytest.mark.parametrize(
    ("counts", "stage"),
    [
        ({"waiting": 100}, Stage.CANARY),
        ({"waiting": 98, "asked": 1, "recovered": 1}, Stage.CANARY),
        ({"waiting": 98, "recovered": 2}, Stage.SHARE),
        ({"waiting": 88, "recovered": 11, "asked": 1}, Stage.SHARE),
        ({"waiting": 88, "recovered": 12}, Stage.REST),
    ],
)
def test_the_stage_is_seen_by_the_counts(counts: dict[str, Any], stage: Stage) -> None:
    assert bulk.stage_of(pace(), Counts(**counts)) is stage


@pytest.mark.parametrize("letters", [1, 2, 3, 7])
def test_a_few_letters_are_all_asked_in_the_end(letters: int) -> None:
    """Played with verdicts that come at once."""
    taken = 0
    for _ in range(3 * letters):
        following = bulk.next_of(pace(letters=letters), standing(waiting=letters - taken, recovered=taken))
        if isinstance(following, Ask):
            assert taken < following.up_to <= letters
            taken = following.up_to

    assert taken == letters
    assert following == End(state=RedriveState.COMPLETED)


@pytest.mark.parametrize(
    "nonsense", [{"letters": 0}, {"canary": 0}, {"share": 0}, {"share": 1.1}, {"rate_per_second": 0}]
)
def test_a_pace_that_makes_no_sense_is_refused(nonsense: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        pace(**nonsense)
