"""What holds for every command: --json, one voice in the help, and one line that says what to do when it fails."""

import json
from collections.abc import Callable

import httpx
import pytest

from agentjobs.commands.problems import ADVICE
from tests.commands.conftest import CommandLine
from tests.commands.fake_api import FakeApi, Trouble, answering, problem, refused
from tests.commands.walk import HERE, asking, commands, invocation

REFUSALS = (401, 403, 404, 409, 422, 429)


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


@pytest.mark.parametrize("words", asking())
def test_a_refusal_is_one_line_that_says_what_to_do(command_line: CommandLine, api: Always, words: str) -> None:
    for status in REFUSALS:
        api.trouble = refusing(status)

        # A quota is waited for, unless one does not want to.
        result = command_line.run(*invocation(words), "--json")

        last = result.stderr.splitlines()[-1]
        assert result.exit_code == 1, (status, result.output)
        assert (result.stdout, last.startswith("error: Refused: as told")) == ("", True), (status, last)
        assert last.endswith(f"(HTTP {status}); {ADVICE[status]}"), last
    assert api.requests


@pytest.mark.parametrize("words", asking())
def test_an_api_that_is_away_exits_3_and_says_how_to_reach_one(
    command_line: CommandLine, api: Always, words: str
) -> None:
    told = []
    for trouble in (refused, refusing(503)):
        api.trouble = trouble
        result = command_line.run(*invocation(words))
        assert (result.exit_code, result.stdout) == (3, "")
        told.append(result.stderr.splitlines()[-1])

    down, busy = told
    assert "does not answer" in down
    assert "`python starter.py dev`" in down
    assert busy.startswith("error: the API at http://127.0.0.1:8080 cannot serve now: Refused: as told (HTTP 503)")


@pytest.mark.parametrize("words", asking())
def test_without_an_api_each_says_both_ways_to_name_one(command_line: CommandLine, api: Always, words: str) -> None:
    (command_line.home / "stack.json").unlink()

    result = command_line.run(*invocation(words), "--json")

    assert (result.exit_code, result.stdout, api.requests) == (3, "", [])
    assert "`python starter.py dev`" in result.stderr
    assert "AGENTJOBS_API " in result.stderr


def test_a_problem_as_json_leaves_stdout_empty_for_the_program_that_reads_it(
    command_line: CommandLine, api: Always
) -> None:
    api.trouble = answering(httpx.Response(200, json={"items": [], "next_cursor": None}))

    assert json.loads(command_line.run("list", "--json").stdout) == {"items": [], "next_cursor": None}
