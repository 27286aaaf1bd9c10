import json

import pytest

from agentjobs.commands.report_lines import ASCII_BLOCKS, BLOCKS, chart
from tests.commands.conftest import CommandLine
from tests.commands.documents import Document, letter_document
from tests.commands.fake_api import ADMIN_KEY, FakeApi, refused


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    api.letters = {"a": letter_document("a"), "b": letter_document("b", reason="bug")}
    return api


def test_list_uses_the_admin_key(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("dead", "list", "--reason", "bug")

    assert result.stdout.splitlines()[1].startswith("b   open   bug")
    assert api.requests[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"


def test_show_gives_what_is_needed_to_decide(command_line: CommandLine) -> None:
    shown = command_line.run("dead", "show", "a").stdout

    assert "effects in doubt  step-1.create_ticket\n" in shown
    assert "input             It\n                  hurts.\n" in shown


def test_show_tells_what_was_spent_on_what(command_line: CommandLine, api: FakeApi) -> None:
    cost = {"tokens_in": 7, "tokens_out": 2, "usd": "0.250000", "tokens_reserved": 0, "usd_reserved": "0.000000"}
    held = {"tokens_in": 0, "tokens_out": 0, "usd": "0.000000", "tokens_reserved": 10, "usd_reserved": "0.500000"}
    api.letters["a"]["spent"] = [
        {"step": "plan", "model": "big", "attempts": 1, **cost},
        {"step": "step-1.model", "model": None, "attempts": 2, **held},
    ]

    lines = command_line.run("dead", "show", "a").stdout.splitlines()[-3:]

    assert [line.split() for line in lines] == [
        ["SPENT", "ON", "MODEL", "ATTEMPTS", "TOKENS", "IN", "OUT", "USD", "HELD", "BACK"],
        ["plan", "big", "1", "7", "2", "0.250000", "-"],
        ["step-1.model", "-", "2", "0", "0", "-", "10", "tokens,", "0.500000", "USD"],
    ]


def test_show_of_a_job_that_cost_nothing_has_no_table(command_line: CommandLine) -> None:
    assert "SPENT ON" not in command_line.run("dead", "show", "a").output


def test_redrive_sends_note_and_policy(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("dead", "redrive", "a", "--note", "the key is renewed", "--policy", "current")

    assert (result.exit_code, "status a" in result.stdout) == (0, True)
    assert json.loads(api.requests[0].content) == {"note": "the key is renewed", "policy": "current"}


def test_only_an_explicit_word_has_an_effect_again(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("dead", "redrive", "a", "--note", "it is not there", "--again")

    assert result.exit_code == 0
    assert json.loads(api.requests[0].content)["again"] is True


def test_the_original_policy_is_the_default(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("dead", "redrive", "a", "--note", "again")

    assert json.loads(api.requests[0].content)["policy"] == "original"


def test_a_decision_needs_a_note(command_line: CommandLine, api: FakeApi) -> None:
    assert command_line.run("dead", "redrive", "a").exit_code == 2
    assert command_line.run("dead", "discard", "a").exit_code == 2
    assert not api.requests


def test_a_blank_note_is_refused_in_the_apis_words(command_line: CommandLine) -> None:
    result = command_line.run("dead", "discard", "a", "--note", " ")

    assert (result.exit_code, "the note must not be blank" in result.stderr) == (1, True)


def test_what_is_decided_is_refused(command_line: CommandLine) -> None:
    assert command_line.json("dead", "discard", "a", "--note", "spam")["state"] == "discard_requested"

    again = command_line.run("dead", "redrive", "a", "--note", "no, wait")

    assert (again.exit_code, "discard_requested" in again.stderr) == (1, True)


def test_a_decision_is_never_repeated_by_itself(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [api.lose_the_answer]

    result = command_line.run("dead", "redrive", "a", "--note", "again")

    assert (result.exit_code, len(api.requests)) == (3, 1)
    assert "may have been done" in result.stderr


def test_report_counts_and_draws_in_ascii_where_it_is_piped(command_line: CommandLine, api: FakeApi) -> None:
    api.flow = [flow(0, died=8), flow(1), flow(2, died=1, redriven=2, discarded=2)]

    lines = command_line.run("dead", "report", "--window", "3").stdout.splitlines()

    assert dict(api.requests[0].url.params) == {"window_hours": "3"}
    assert lines[1].startswith("access_denied  10    " + "#" * 20)
    assert lines[2].startswith("bug            1     " + "#" * 2 + " ")
    assert [line.split("  ", 1)[1].strip() for line in lines[3:]] == [
        "11 open, 2 redriven",
        "1 < 1 d, 10 < 7 d",
        "2026-02-27T12:00:00Z",
        "since 2026-02-28T12:00:00Z, at most 8",
        "|# .| 9",
        "|  =| 4",
        "2 recovered, 1 died again, 3 discarded",
        "median 90s, nine in ten within 2h",
    ]
    assert "\n".join(lines).isascii()


def test_report_draws_blocks_on_a_terminal() -> None:
    assert chart([8, 0, 1, 4], 8, BLOCKS) == "\u2588 \u2581\u2584"


def test_the_smallest_count_is_drawn() -> None:
    assert chart([1, 0], 1_000_000, ASCII_BLOCKS) == ". "


def test_report_without_anything_in_the_window_has_no_chart(command_line: CommandLine, api: FakeApi) -> None:
    api.flow = [flow(0), flow(1)]

    assert "|" not in command_line.run("dead", "report").stdout


def flow(hour: int, **counts: int) -> Document:
    return {"at": f"2026-03-01T{hour:02}:00:00Z", "died": 0, "redriven": 0, "discarded": 0, **counts}


def test_redrive_sends_another_input_and_larger_limits(command_line: CommandLine, api: FakeApi) -> None:
    changes = ("--input", "room 7", "--budget", "tokens=100000", "--budget", "usd=1.50", "--budget", "steps=8")
    result = command_line.run("dead", "redrive", "a", "--note", "x", *changes)

    assert result.exit_code == 0
    assert json.loads(api.requests[0].content) == {
        "note": "x",
        "policy": "original",
        "input": {"text": "room 7"},
        "budget": {"tokens": 100_000, "usd": "1.50", "steps": 8},
    }


@pytest.mark.parametrize("limit", ["tokens", "tokens=", "tokens=many", "steps=-1", "usd=", "seconds=3", "=3"])
def test_a_limit_that_cannot_be_meant_is_not_sent(command_line: CommandLine, api: FakeApi, limit: str) -> None:
    result = command_line.run("dead", "redrive", "a", "--note", "x", "--budget", limit)

    assert (result.exit_code, "--budget tokens=100000" in result.stderr) == (2, True)
    assert not api.requests


def test_show_tells_deaths_attempts_effects_and_the_earlier_input(command_line: CommandLine, api: FakeApi) -> None:
    api.letters["a"] |= {
        "deaths": [
            {
                "generation": 1,
                "reason": "bug",
                "resolution": "redriven",
                "resolved_by": "rita",
                "outcome": "died_again",
            },
            {"generation": 2, "reason": "access_denied"},
        ],
        "tried": [{"outcome": "failed", "category": "timeout", "attempts": 3, "wait_seconds": 90.0}],
        "effects": [{"step": "step-1.create_ticket", "outcome": "stays", "because": "undo_given_up"}],
        "input_changes": [{"generation": 1, "old_input": {"text": "Old"}, "changed_by": "rita", "note": "room 7"}],
    }

    shown = command_line.run("dead", "show", "a").stdout

    for words in (
        "1  bug  redriven by rita  died_again\n",
        "2  access_denied\n",
        "3 attempts failed timeout, waited 90s\n",
        "step-1.create_ticket  stays  (undo_given_up)\n",
        "changed by rita (room 7)\n",
        "b-7\n",
    ):
        assert words in shown


def test_json(command_line: CommandLine, api: FakeApi) -> None:
    assert command_line.json("dead", "report")["open_count"] == 11
    assert len(command_line.json("dead", "list")["items"]) == 2
    assert command_line.json("dead", "show", "a")["input"] == {"text": "It\nhurts."}


def test_no_api(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [refused]

    assert command_line.run("dead", "list").exit_code == 3
