import json
from pathlib import Path

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import dead, job_document, succeeded
from tests.commands.fake_api import FakeApi, answering, problem, refused


def sent(api: FakeApi) -> dict[str, object]:
    document: dict[str, object] = json.loads(api.requests[0].content)
    return document


def test_the_id_alone_stands_on_stdout(command_line: CommandLine) -> None:
    result = command_line.run("submit", "My printer is on fire")

    assert (result.exit_code, result.stdout) == (0, "job-1\n")
    assert "watch job-1" in result.stderr


def test_json_prints_the_job_and_nothing_else(command_line: CommandLine) -> None:
    result = command_line.run("submit", "help", "--json")

    assert json.loads(result.stdout) == job_document("job-1")
    assert result.stdout.count("\n") == 1


def test_options_become_the_body(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("submit", "help", "--agent", "a", "--deadline", "60", "--priority", "1", "--key", "k-1")

    assert sent(api) == {"input": {"text": "help"}, "agent": "a", "deadline_seconds": 60, "priority": 1}
    assert api.requests[0].headers["Idempotency-Key"] == "k-1"


def test_what_is_not_given_is_left_to_the_api(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("submit", "help")

    assert sent(api) == {"input": {"text": "help"}}


def test_text_from_standard_input(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("submit", "-", stdin="zwei\nZeilen, größer\n")

    assert sent(api) == {"input": {"text": "zwei\nZeilen, größer\n"}}


def test_text_from_a_file(command_line: CommandLine, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "request.txt").write_bytes(b"\xef\xbb\xbffrom a file")

    command_line.run("submit", f"@{tmp_path / 'request.txt'}")

    assert sent(api) == {"input": {"text": "from a file"}}


def test_bytes_that_are_no_utf_8_are_wrong_usage(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("submit", "-", stdin=b"caf\xe9")

    assert result.exit_code == 2
    assert "standard input is not UTF-8 (byte 3)" in result.stderr
    assert not api.requests


def test_an_argument_that_is_no_utf_8_is_wrong_usage(command_line: CommandLine) -> None:
    result = command_line.run("submit", "caf\udce9")

    assert (result.exit_code, "not UTF-8" in result.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [["@/no/such/file"], ["--file", "/no/such/file"], ["@"], ["@/"]])
def test_a_file_that_cannot_be_read_is_one_line(command_line: CommandLine, arguments: list[str]) -> None:
    result = command_line.run("submit", *arguments)

    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "cannot read" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["text", "--file", "x"], ["--file", "x", "--key", "k"]])
def test_one_source_only(command_line: CommandLine, arguments: list[str]) -> None:
    assert command_line.run("submit", *arguments).exit_code == 2


@pytest.mark.parametrize("key", ["", " ", "ключ", "a\nb"])
def test_a_key_that_no_header_can_carry_is_wrong_usage(command_line: CommandLine, api: FakeApi, key: str) -> None:
    result = command_line.run("submit", "help", "--key", key)

    assert result.exit_code == 2
    assert not api.requests


def test_the_apis_own_words_are_shown(command_line: CommandLine) -> None:
    result = command_line.run("submit", "  ")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "the request is not valid" in result.stderr
    assert "/input/text: must not be blank" in result.stderr


def test_a_lost_answer_is_asked_again_under_the_same_key(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [api.lose_the_answer, refused]

    result = command_line.run("submit", "help")

    assert (result.exit_code, result.stdout) == (0, "job-1\n")
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1
    assert list(api.jobs) == ["job-1"]
    assert command_line.waits == [0.5, 1.0]


def test_retry_after_is_honoured(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [
        answering(problem(503, "Service Unavailable", "restarting", {"Retry-After": "7"})),
        answering(
            problem(503, "Service Unavailable", "restarting", {"Retry-After": "Sun, 01 Mar 2026 12:00:20 GMT"})
        ),
    ]

    result = command_line.run("submit", "help")

    assert result.exit_code == 0
    assert command_line.waits == pytest.approx([7.5, 21.0])


def test_a_first_try_still_in_flight_is_waited_for(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(problem(409, "Conflict", "the first request with this key is still in flight"))]

    assert command_line.run("submit", "help").exit_code == 0


def test_giving_up_names_the_key(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [refused] * 5

    result = command_line.run("submit", "help")

    key = api.requests[0].headers["Idempotency-Key"]
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"--key {key}" in result.stderr
    assert len(api.requests) == 5


def test_a_wait_that_is_too_long_is_not_waited(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(problem(503, "Service Unavailable", "maintenance", {"Retry-After": "3600"}))]

    result = command_line.run("submit", "help")

    assert (result.exit_code, command_line.waits) == (3, [])


def test_over_quota_waits_as_asked_and_then_gives_up(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(problem(429, "Too Many Requests", "5 jobs in flight", {"Retry-After": "20"}))] * 9

    result = command_line.run("submit", "help")

    assert (result.exit_code, len(command_line.waits)) == (1, 2)
    assert "--key" in result.stderr


def test_a_refusal_is_not_repeated(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("submit", " ")

    assert (len(api.requests), "--key" in result.stderr) == (1, False)


def test_wait_follows_to_success(command_line: CommandLine, api: FakeApi) -> None:
    api.becomes = lambda job_id: [job_document(job_id), job_document(job_id, "running"), succeeded(job_id)]

    result = command_line.run("submit", "help", "--wait")

    assert (result.exit_code, result.stdout) == (0, "job-1\n")
    assert "running" in result.stderr
    assert "A ticket is open." in result.stderr


def test_wait_ends_badly_with_1(command_line: CommandLine, api: FakeApi) -> None:
    api.becomes = lambda job_id: [dead(job_id)]

    result = command_line.run("submit", "help", "--wait")

    assert result.exit_code == 1
    assert "dead show job-1" in result.stderr


def test_wait_with_json_prints_the_final_job_only(command_line: CommandLine, api: FakeApi) -> None:
    api.becomes = lambda job_id: [job_document(job_id, "running"), succeeded(job_id)]

    assert command_line.json("submit", "help", "--wait") == succeeded("job-1")


def test_an_accepted_job_is_named_when_following_it_fails(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [api._answer, refused]

    result = command_line.run("submit", "help", "--wait", "--json")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "watch job-1" in result.stderr


def test_ctrl_c_while_waiting_names_the_job_and_exits_130(command_line: CommandLine) -> None:
    command_line.interrupt_after = 0

    result = command_line.run("submit", "help", "--wait")

    assert (result.exit_code, result.stdout) == (130, "job-1\n")
    assert "the job goes on" in result.stderr
