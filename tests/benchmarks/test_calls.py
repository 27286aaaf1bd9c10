"""What the model's log says of calls that were made again."""

import json
from pathlib import Path

from benchmarks.calls import Calls


def calls_of(*lines: str, jobs: tuple[str, ...] = ("a", "b")) -> Calls:
    """Each line: event, moment, job, call."""
    names = ("event", "at", "job", "call")
    entries = [dict(zip(names, line.split(), strict=True)) for line in lines]
    return Calls.of([json.dumps(entry | {"at": float(entry["at"])}) for entry in entries], jobs)


def test_a_call_that_is_made_once_is_not_repeated() -> None:
    calls = calls_of("asked 1 a plan", "answered 2 a plan", "asked 3 a step", "asked 3 b plan")

    assert (calls.repeated, calls.repeated_answered, calls.repeated_late) == (0, 0, 0)


def test_a_call_that_was_cut_off_is_repeated_though_nobody_had_its_answer() -> None:
    calls = calls_of("asked 1 a plan", "left 2 a plan", "asked 3 a plan", "answered 4 a plan")

    assert (calls.repeated, calls.repeated_answered, calls.repeated_late) == (1, 0, 0)


def test_a_call_that_was_answered_and_comes_again_is_counted_as_such() -> None:
    calls = calls_of("asked 1 a plan", "answered 2 a plan", "asked 3 a plan")

    assert (calls.repeated, calls.repeated_answered, calls.repeated_late) == (1, 1, 0)


def test_a_job_that_begins_anew_repeats_calls_whose_answers_it_had_used() -> None:
    calls = calls_of(
        *("asked 1 a 0", "answered 2 a 0", "asked 3 a 1", "answered 4 a 1", "asked 5 a 2"),
        *("asked 6 a 0", "answered 7 a 0", "asked 8 a 1"),
    )

    assert (calls.repeated, calls.repeated_answered, calls.repeated_late) == (2, 2, 2)


def test_jobs_do_not_repeat_each_others_calls() -> None:
    calls = calls_of("asked 1 a plan", "answered 2 a plan", "asked 3 b plan")

    assert calls.repeated == 0


def test_calls_of_other_jobs_are_left_out() -> None:
    calls = calls_of("asked 1 a plan", "asked 2 warm plan", jobs=("a",))

    assert [line.job for line in calls.asked] == ["a"]


def test_a_job_moves_again_with_its_first_call_after_the_kill() -> None:
    calls = calls_of("asked 1 a 0", "answered 6 a 0", "asked 7.5 a 1", "asked 9 a 2", "asked 1 b 0")

    assert calls.moved_after(5) == {"a": 2.5}


def test_without_a_log_nobody_was_asked(tmp_path: Path) -> None:
    assert Calls.read(tmp_path / "calls.jsonl", ["a"]).lines == ()
