import json
import re

import httpx
import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import dead, letter_document, succeeded, waiting
from tests.commands.fake_api import FakeApi, answering, problem

NASTY = "[bold red]x[/] \x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe\x00\r\nnext :smile: https://e.org"
COMMANDS = [
    ("status", "a"),
    ("watch", "a"),
    ("list",),
    ("attempts", "a"),
    ("waiting",),
    ("dead", "list"),
    ("dead", "show", "a"),
]


def nasty_api(api: FakeApi) -> None:
    job = dead("a", message=NASTY) | {"agent": NASTY, "result": succeeded("a", NASTY)["result"]}
    api.jobs["a"] = [job]
    api.jobs["b"] = [waiting("b", "2026-03-01T12:05:00Z", agent=NASTY, step=NASTY)]
    api.temporal_ui = NASTY
    attempt = {"step": NASTY, "attempt": 1, "outcome": NASTY, "message": NASTY, "model": NASTY}
    api.attempts["a"] = [attempt]
    api.letters["a"] = letter_document("a", message=NASTY, note=NASTY, effects_done=[{"receipt": NASTY}, NASTY])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_in_an_answer_steers_the_terminal(
    command_line: CommandLine, api: FakeApi, command: tuple[str, ...], terminal: bool
) -> None:
    nasty_api(api)
    environment = {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "2000", "TERM": "xterm"} if terminal else {}

    shown = command_line.run(*command, env=environment).output
    shown = re.sub(r"\r(\x1b\[1A)?\x1b\[2K", "", shown)  # the moving line of `watch` is ours

    assert not set(shown) & set("\x00\r\x07\x9b\u202e")
    assert "\x1b]" not in shown
    assert "[bold red]x[/]" in shown
    assert ":smile:" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_json_is_one_document_of_plain_ascii(
    command_line: CommandLine, api: FakeApi, command: tuple[str, ...]
) -> None:
    nasty_api(api)

    result = command_line.run(*command, "--json")

    json.loads(result.stdout)
    assert (result.stdout.isascii(), result.stdout.count("\n"), "\x1b" in result.stdout) == (True, 1, False)


def test_a_refusal_cannot_steer_the_terminal_either(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(problem(422, NASTY, NASTY, errors=[{"pointer": NASTY, "detail": NASTY}]))]

    told = command_line.run("list").stderr

    assert told.count("\n") == 1
    assert not set(told) & set("\x00\r\x07\x1b\x9b\u202e")


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<html>hello</html>", headers={"Content-Type": "text/html"}),
        httpx.Response(404, text="<html>not here</html>", headers={"Content-Type": "text/html"}),
        httpx.Response(301, headers={"Location": "/login"}),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"items": [{"id": 1}], "next_cursor": None}),
        httpx.Response(200, content=b"\xff\xfe"),
    ],
)
def test_something_else_at_the_address_is_said(
    command_line: CommandLine, api: FakeApi, response: httpx.Response
) -> None:
    api.troubles = [answering(response)]

    result = command_line.run("list")

    assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
    assert "is not this API" in result.stderr


def test_a_gateway_without_an_api_behind_it_counts_as_unreachable(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(httpx.Response(502, text="<h1>Bad Gateway</h1>"))]

    assert command_line.run("list").exit_code == 3


def test_a_wrong_key_says_which_variable(command_line: CommandLine) -> None:
    result = command_line.run("list", env={"AGENTJOBS_API_KEY": "ajk_wrong"})

    assert (result.exit_code, "AGENTJOBS_API_KEY" in result.stderr) == (1, True)


def test_dev_takes_its_options(command_line: CommandLine) -> None:
    shown = command_line.run("dev", "--help", env={"COLUMNS": "200"}).stdout

    assert all(
        option in shown
        for option in ("--home", "--api-port", "--temporal-port", "--ui-port", "--postgres-port", "--workers")
    )
