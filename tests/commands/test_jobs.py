import re

import pytest

from agentjobs.commands.job_lines import ATTEMPT_COLUMNS
from tests.commands.conftest import CommandLine
from tests.commands.documents import attempt_document, dead, job_document, succeeded
from tests.commands.fake_api import FakeApi


def test_status_shows_where_a_job_stands(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [succeeded("a")]

    facts = dict(line.split("  ", 1) for line in command_line.run("status", "a").stdout.splitlines())

    assert facts["state"].strip() == "succeeded"
    assert facts["answer"].strip() == "A ticket is open."
    assert 'step-1.create_ticket  completed  {"ticket": "T-1"}' in facts["effects"]
    assert facts["ended"].strip() == "2026-03-01T12:00:00Z"


def test_status_of_a_dead_job_exits_0_and_says_why(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [dead("a")]

    result = command_line.run("status", "a")

    assert result.exit_code == 0
    assert "access_denied: the tracker refused the key" in result.stdout


def test_json_keeps_every_field_also_unknown_ones(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [succeeded("a") | {"new_field": {"deep": [1, None, "x"]}}]

    assert command_line.json("status", "a") == succeeded("a") | {"new_field": {"deep": [1, None, "x"]}}


def test_an_unknown_id_is_one_line_and_1(command_line: CommandLine) -> None:
    result = command_line.run("status", "nope")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: Not Found: no job nope (HTTP 404)")


def test_an_id_cannot_leave_its_place_in_the_path(command_line: CommandLine, api: FakeApi) -> None:
    for identifier in ("../keys", "..", "a/b", "a?b", "", "a%2fb", "\x1b[31m"):
        assert command_line.run("cancel", identifier).exit_code == 2

    assert not api.requests


def test_list_in_a_pipe_is_aligned_and_whole(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["short"] = [job_document("short")]
    api.jobs["x" * 60] = [dead("x" * 60, message="long " * 40)]

    header, first, second = command_line.run("list").stdout.splitlines()

    assert header.split()[:3] == ["ID", "STATE", "CREATED"]
    assert header.index("STATE") == first.index("pending") == second.index("dead")
    assert second.endswith(("long " * 40).strip())


def test_list_on_a_terminal_fits_and_keeps_ids_whole(command_line: CommandLine, api: FakeApi) -> None:
    identifier = "01234567-89ab-cdef-0123-456789abcdef"
    api.jobs[identifier] = [dead(identifier, message="long " * 40)]

    result = command_line.run(
        "list", env={"TTY_COMPATIBLE": "1", "COLUMNS": "80", "NO_COLOR": "1", "TERM": "xterm"}
    )

    lines = re.sub(r"\x1b\[[01]m", "", result.stdout).splitlines()
    assert "\x1b[3" not in result.stdout
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith(f"{identifier}  dead   2m")
    assert lines[1].endswith("…")


def test_list_filters(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [job_document("a")]
    api.jobs["b"] = [dead("b")]

    found = command_line.json("list", "--state", "dead", "--agent", "support-triage")

    assert [job["id"] for job in found["items"]] == ["b"]
    assert api.requests[0].url.params["state"] == "dead"


def test_a_state_that_is_none_is_wrong_usage(command_line: CommandLine) -> None:
    assert command_line.run("list", "--state", "asleep").exit_code == 2


def test_limit_may_go_beyond_a_page_and_the_rest_is_mentioned(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs = {f"j-{number}": [job_document(f"j-{number}")] for number in range(500)}

    result = command_line.run("list", "--limit", "250")

    assert len(result.stdout.splitlines()) == 251
    assert "--all" in result.stderr
    assert [request.url.params["limit"] for request in api.requests] == ["200", "50"]


def test_all_follows_every_cursor(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs = {f"j-{number}": [job_document(f"j-{number}")] for number in range(450)}

    found = command_line.json("list", "--all")

    assert (len(found["items"]), found["next_cursor"]) == (450, None)


def test_an_empty_list_says_so_beside_the_output(command_line: CommandLine) -> None:
    result = command_line.run("list")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no jobs\n")


def test_cancel(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [job_document("a")]
    api.jobs["b"] = [succeeded("b")]

    assert command_line.run("cancel", "a").stdout == "cancel asked: a is pending\n"
    refused = command_line.run("cancel", "b")
    assert (refused.exit_code, "the job is succeeded" in refused.stderr) == (1, True)


def attempted(api: FakeApi) -> None:
    api.jobs["a"] = [succeeded("a")]
    failed = {"outcome": "failed", "category": "rate_limited", "message": "slow down " * 20, "wait_seconds": 1.25}
    held = {"tokens_reserved": 16_000, "usd_reserved": "0.500000"}
    api.attempts["a"] = [attempt_document(**failed, **held), attempt_document(id=2, attempt=2)]


def test_attempts_in_a_pipe_are_whole(command_line: CommandLine, api: FakeApi) -> None:
    attempted(api)

    header, first, second, total = command_line.run("attempts", "a").stdout.splitlines()

    assert first.split()[:7] == [
        *("step-1.create_ticket", "1", "failed", "1.2s", "15", "0.000010", "worker-1-of-a-machine")
    ]
    assert "2.5s  offline  16000 tokens, 0.500000 USD  2026-03-01T11:00:00Z  rate_limited: slow down" in first
    assert first.endswith(("slow down " * 20).strip())
    assert header.index("WORKER") == first.index("worker-1") == second.index("worker-1")
    assert total == "2 attempts: spent 30 tokens, 0.000020 USD; held back 16000 tokens, 0.500000 USD"


def test_attempts_of_nothing_have_no_total(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [job_document("a")]

    result = command_line.run("attempts", "a")

    assert (result.stdout, result.stderr) == ("", "no attempts yet\n")


def test_attempts_that_cost_nothing_say_so(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [succeeded("a")]
    api.attempts["a"] = [attempt_document(tokens_in=0, tokens_out=0, usd="0.000000", outcome="abandoned")]

    shown = command_line.run("attempts", "a").stdout

    assert "abandoned" in shown
    assert shown.endswith("1 attempt: spent nothing; held back nothing\n")


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["STEP", "ATTEMPT", "OUTCOME", "WAIT", "TOKENS", "USD", "FAILURE"]),
        (90, ["STEP", "ATTEMPT", "OUTCOME", "WAIT", "TOKENS", "USD", "WORKER", "FAILURE"]),
        (120, [*ATTEMPT_COLUMNS[:10], "FAILURE"]),
        (200, [*ATTEMPT_COLUMNS]),
    ],
)
def test_attempts_fit_every_terminal(
    command_line: CommandLine, api: FakeApi, width: int, columns: list[str]
) -> None:
    attempted(api)

    header, *rows, total = terminal_lines(command_line, width, "attempts", "a")

    assert re.split(r"\s{2,}", header.rstrip()) == columns
    assert max(map(len, [header, *rows])) <= width
    assert "1.2s  15      0.000010" in rows[0]
    assert re.search("rate_limit.*…$", rows[0].rstrip())
    assert rows[0].startswith("step-1.create_ticket  1        failed")
    assert total.startswith("2 attempts: spent 30 tokens")


def test_attempts_json_keeps_every_field(command_line: CommandLine, api: FakeApi) -> None:
    attempted(api)

    assert command_line.json("attempts", "a")["items"] == api.attempts["a"]


def test_status_shows_limits_and_what_is_held_back(command_line: CommandLine, api: FakeApi) -> None:
    usage = {"tokens_in": 7, "tokens_out": 2, "usd": "0.2", "tokens_reserved": 10, "usd_reserved": "0.500000"}
    budget = {"tokens": 50_000, "usd": "0.250000", "steps": 3}
    api.jobs["a"] = [job_document("a", usage=usage, budget=budget)]

    shown = command_line.run("status", "a").stdout

    assert "held back  10 tokens, 0.500000 USD\n" in shown
    assert "budget     50000 tokens, 0.250000 USD, 3 steps\n" in shown
    assert "trace      4bf92f3577b34da6a3ce929d0e0e4736\n" in shown


def terminal_lines(command_line: CommandLine, width: int, *arguments: str) -> list[str]:
    """What a terminal of so many columns shows, without styles."""
    terminal = {"TTY_COMPATIBLE": "1", "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}
    shown = command_line.run(*arguments, env=terminal).stdout
    return re.sub(r"\x1b\[[012]?m", "", shown).splitlines()
