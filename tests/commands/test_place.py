from pathlib import Path

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, API_KEY, FakeApi

ELSEWHERE = "https://jobs.example.org/base"


def asked(api: FakeApi) -> tuple[str, str]:
    request = api.requests[-1]
    return f"{request.url.scheme}://{request.url.netloc.decode()}{request.url.path}", request.headers[
        "Authorization"
    ][7:]


def test_the_running_stack_is_found(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("submit", "hello")
    assert asked(api) == ("http://127.0.0.1:8080/v1/jobs", API_KEY)

    # Whoever has the stack may see all that is in it, also other users' jobs.
    command_line.run("list")
    assert asked(api) == ("http://127.0.0.1:8080/v1/jobs", ADMIN_KEY)

    command_line.run("dead", "list")
    assert asked(api) == ("http://127.0.0.1:8080/v1/dead-letters", ADMIN_KEY)


def test_home_may_be_an_option_and_has_a_default(
    command_line: CommandLine, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.home.rename(tmp_path / ".agentjobs")
    monkeypatch.chdir(tmp_path)

    assert command_line.run("list").exit_code == 3
    assert command_line.run("list", "--home", str(tmp_path / ".agentjobs")).exit_code == 0
    assert command_line.run("list", env={"AGENTJOBS_HOME": ""}).exit_code == 0


def test_the_environment_goes_before_the_stack(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [api._answer, api._answer]
    environment = {"AGENTJOBS_API": ELSEWHERE + "/", "AGENTJOBS_API_KEY": " k-1\n"}

    command_line.run("status", "a", env=environment)

    assert asked(api) == (f"{ELSEWHERE}/v1/jobs/a", "k-1")


def test_review_commands_prefer_the_admin_key(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("dead", "list", env={"AGENTJOBS_API_KEY": "one", "AGENTJOBS_ADMIN_KEY": "two"})
    assert asked(api)[1] == "two"

    command_line.run("dead", "list", env={"AGENTJOBS_API_KEY": "one"})
    assert asked(api)[1] == "one"

    command_line.run("list", env={"AGENTJOBS_API_KEY": "one", "AGENTJOBS_ADMIN_KEY": "two"})
    assert asked(api)[1] == "one"


def test_the_stacks_keys_are_never_sent_elsewhere(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("list", env={"AGENTJOBS_API": ELSEWHERE})

    assert (result.exit_code, "AGENTJOBS_API_KEY" in result.stderr) == (2, True)
    assert not api.requests


def test_the_stacks_keys_serve_its_own_address(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("list", env={"AGENTJOBS_API": "http://127.0.0.1:8080/"})

    assert asked(api)[1] == ADMIN_KEY


def test_nothing_known_is_one_line_with_both_ways(command_line: CommandLine) -> None:
    (command_line.home / "stack.json").unlink()

    result = command_line.run("list")

    assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
    assert "starter.py dev" in result.stderr
    assert "AGENTJOBS_API and AGENTJOBS_API_KEY" in result.stderr


@pytest.mark.parametrize(
    "content", ["", "[]", '{"api": "http://x"}', '{"api": "", "api_key": "", "admin_key": ""}']
)
def test_a_broken_stack_file_is_told_without_its_content(command_line: CommandLine, content: str) -> None:
    (command_line.home / "stack.json").write_text(content)

    result = command_line.run("list")

    assert (result.exit_code, "is not a stack.json" in result.stderr) == (2, True)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://x:99999", "http://[::1"])
def test_an_address_that_is_none_names_the_variable(command_line: CommandLine, url: str) -> None:
    result = command_line.run("list", env={"AGENTJOBS_API": url, "AGENTJOBS_API_KEY": "k"})

    assert (result.exit_code, "AGENTJOBS_API" in result.stderr) == (2, True)


def test_a_key_that_is_none_is_not_repeated(command_line: CommandLine) -> None:
    result = command_line.run("list", env={"AGENTJOBS_API_KEY": "gehéim"})

    assert (result.exit_code, "gehéim" in result.output) == (2, False)
