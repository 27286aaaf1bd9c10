"""What holds for every command: --json, one voice in the help, and one line that says what to do when it fails."""

from collections.abc import Callable

import httpx
import pytest

from agentjobs.commands.problems import ADVICE
from tests.commands.conftest import CommandLine
from tests.commands.fake_api import URL, FakeApi, Trouble, answering, problem, refused
from tests.commands.walk import HERE, asking, commands, invocation


class Always(FakeApi):
    """An API that answers everything alike."""

    trouble: Trouble = staticmethod(refused)

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.trouble(request)


@pytest.fixture
def api() -> Always:
    return Always()


def refusing(status: int) -> Callable[[httpx.Request], httpx.Response]:
    return answering(problem(status, "Refused", "as told", {"Retry-After": "7"}))


def test_every_command_has_json_but_those_that_run_a_stack() -> None:
    without = {
        words
        for words, command in commands().items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }

    assert without == HERE


def test_every_help_begins_with_what_the_command_does_and_every_option_says_what_it_is() -> None:
    helps = {words: command.help or "" for words, command in commands().items()}
    silent = [
        (words, parameter.name)
        for words in asking()
        for parameter in commands()[words].params
        if not getattr(parameter, "help", None) and parameter.param_type_name == "option"
    ]

    assert [words for words, told in helps.items() if not (told[:1].isupper() and told.endswith("."))] == []
    assert silent == []


@pytest.mark.parametrize("status", sorted(ADVICE))
def test_each_refusal_says_what_to_do(command_line: CommandLine, api: Always, status: int) -> None:
    api.trouble = refusing(status)

    result = command_line.run("dead", "redrive", "a", "--note", "n", "--json")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: Refused: as told (HTTP {status}); {ADVICE[status]}\n"


@pytest.mark.parametrize("words", asking())
def test_a_refusal_is_one_line_of_every_command(command_line: CommandLine, api: Always, words: str) -> None:
    api.trouble = refusing(403)

    result = command_line.run(*invocation(words), "--json")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: Refused: as told (HTTP 403); {ADVICE[403]}\n"


@pytest.mark.parametrize("words", asking())
def test_an_api_that_is_away_exits_3_and_says_how_to_reach_one(
    command_line: CommandLine, api: Always, words: str
) -> None:
    result = command_line.run(*invocation(words))

    told = result.stderr.splitlines()[-1]
    assert (result.exit_code, result.stdout) == (3, "")
    assert "does not answer" in told
    assert "`python starter.py dev`" in told


def test_an_api_that_cannot_serve_now_is_no_refusal(command_line: CommandLine, api: Always) -> None:
    api.trouble = refusing(503)

    result = command_line.run("list")

    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"error: the API at {URL} cannot serve now: Refused: as told (HTTP 503)\n"


@pytest.mark.parametrize("words", asking())
def test_without_an_api_each_says_both_ways_to_name_one(
    command_line: CommandLine, api: Always, words: str
) -> None:
    (command_line.home / "stack.json").unlink()

    result = command_line.run(*invocation(words), "--json")

    assert (result.exit_code, result.stdout, api.requests) == (3, "", [])
    assert "`python starter.py dev`" in result.stderr
    assert "AGENTJOBS_API " in result.stderr
