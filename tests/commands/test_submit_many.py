import json
from pathlib import Path

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import dead, succeeded
from tests.commands.fake_api import FakeApi, answering, problem, refused


@pytest.fixture
def requests_file(tmp_path: Path) -> Path:
    lines = [{"text": f"request {number}", "key": f"k-{number}"} for number in range(1, 6)]
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def numbers(requests: Path, command_line: CommandLine, *more: str) -> tuple[int, list[str], str]:
    result = command_line.run("submit", "--file", str(requests), *more)
    return result.exit_code, result.stdout.split(), result.stderr


def test_every_line_becomes_a_job(command_line: CommandLine, api: FakeApi, requests_file: Path) -> None:
    code, ids, told = numbers(requests_file, command_line)

    assert (code, sorted(ids)) == (0, sorted(api.jobs))
    assert "5 jobs accepted, 0 failed" in told


def test_ids_come_in_the_order_of_the_file(command_line: CommandLine, api: FakeApi, requests_file: Path) -> None:
    _, ids, _ = numbers(requests_file, command_line)

    again = [
        command_line.run("submit", f"request {number}", "--key", f"k-{number}").stdout.strip()
        for number in range(1, 6)
    ]
    assert ids == again


def test_a_bad_line_is_numbered_and_stops_no_other(
    command_line: CommandLine, api: FakeApi, tmp_path: Path
) -> None:
    lines = [
        b'{"text": "good"}',
        b"not json",
        b"",
        b'{"text": "good", "agnet": "typo"}',
        b'{"text": " "}',
        b'{"text": "caf\xe9"}',
        b'{"text": "good", "key": ""}',
        b'{"text": "good", "key": "\xd0\xba"}',
        b'{"text": 3}',
        b'{"text": "good too"}',
    ]
    (tmp_path / "requests.jsonl").write_bytes(b"\n".join(lines))

    code, ids, told = numbers(tmp_path / "requests.jsonl", command_line)

    assert (code, len(ids)) == (1, 2)
    assert [number for number in range(1, 11) if f"line {number}:" in told] == [2, 4, 5, 6, 7, 8, 9]
    assert "agnet" in told


def test_each_line_has_one_key_over_its_tries(command_line: CommandLine, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help"}\n')
    api.troubles = [api.lose_the_answer]

    code, ids, _ = numbers(tmp_path / "requests.jsonl", command_line)

    assert (code, ids) == (0, ["job-1"])
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1


def test_the_lines_agent_goes_before_the_options(command_line: CommandLine, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help", "agent": "mine"}\n{"text": "help"}\n')

    numbers(tmp_path / "requests.jsonl", command_line, "--agent", "all")

    assert {json.loads(request.content)["agent"] for request in api.requests} == {"mine", "all"}


def test_json_lines_say_what_became_of_each(command_line: CommandLine, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help", "key": "k"}\nnonsense\n')

    result = command_line.run("submit", "--file", str(tmp_path / "requests.jsonl"), "--json")

    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["line"], first["key"], first["job"]["id"]) == (1, "k", "job-1")
    assert (second["line"], second["key"], "error" in second) == (2, None, True)


def test_the_quota_is_waited_for(command_line: CommandLine, api: FakeApi, requests_file: Path) -> None:
    api.troubles = [answering(problem(429, "Too Many Requests", "5 jobs in flight", {"Retry-After": "5"}))] * 20

    code, ids, _ = numbers(requests_file, command_line)

    assert (code, len(ids)) == (0, 5)


def test_no_api_ends_it_early_with_3(command_line: CommandLine, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help"}\n' * 1000)
    api.troubles = [refused] * 10_000

    code, ids, told = numbers(tmp_path / "requests.jsonl", command_line)

    assert (code, ids) == (3, [])
    assert "the lines after were not sent" in told
    assert len(api.requests) < 100


def test_standard_input(command_line: CommandLine) -> None:
    result = command_line.run("submit", "--file", "-", stdin='{"text": "help"}\n')

    assert (result.exit_code, result.stdout) == (0, "job-1\n")


def test_an_empty_file_is_no_failure(command_line: CommandLine) -> None:
    result = command_line.run("submit", "--file", "-", stdin="\n")

    assert (result.exit_code, result.stdout) == (0, "")


def test_wait_exits_1_when_one_ends_badly(command_line: CommandLine, api: FakeApi, requests_file: Path) -> None:
    api.becomes = lambda job_id: [dead(job_id) if job_id == "job-3" else succeeded(job_id)]

    code, ids, told = numbers(requests_file, command_line, "--wait")

    assert (code, len(ids)) == (1, 5)
    assert "job job-3 is dead" in told
