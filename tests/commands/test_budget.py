import json

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, API_KEY, FakeApi, answering, problem


def test_show_tells_limits_spent_and_held_back(command_line: CommandLine, api: FakeApi) -> None:
    api.limits = {"tokens": 1_000, "usd": None}

    result = command_line.run("budget", "show")

    assert result.stdout.splitlines() == [
        "month   2026-03",
        "tokens  limit 1000, 18 spent, 0 held back",
        "USD     no limit, 0.500000 spent, 0.000000 held back",
    ]


def test_both_limits_are_set_at_once(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("budget", "set", "--tokens", "1000", "--usd", "2.50")

    assert (result.exit_code, "limit 1000" in result.stdout) == (0, True)
    assert api.limits == {"tokens": 1_000, "usd": "2.50"}
    assert [request.method for request in api.requests] == ["PUT"]
    assert api.requests[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        (("--tokens", "7"), {"tokens": 7, "usd": "2.50"}),
        (("--usd", "9"), {"tokens": 1_000, "usd": "9"}),
        (("--tokens", "none"), {"tokens": None, "usd": "2.50"}),
        (("--usd", "None"), {"tokens": 1_000, "usd": None}),
        (("--tokens", "none", "--usd", "none"), {"tokens": None, "usd": None}),
    ],
)
def test_a_limit_that_is_not_named_stays(
    command_line: CommandLine, api: FakeApi, arguments: tuple[str, ...], limits: dict[str, object]
) -> None:
    api.limits = {"tokens": 1_000, "usd": "2.50"}

    result = command_line.run("budget", "set", *arguments)

    assert (result.exit_code, api.limits) == (0, limits)
    assert json.loads(api.requests[-1].content) == limits


@pytest.mark.parametrize("arguments", [(), ("--tokens", "many"), ("--tokens", "-1"), ("--tokens", "9" * 5_000)])
def test_what_is_no_limit_is_wrong_usage(
    command_line: CommandLine, api: FakeApi, arguments: tuple[str, ...]
) -> None:
    assert command_line.run("budget", "set", *arguments).exit_code == 2
    assert not api.requests


def test_an_amount_is_judged_by_the_api(command_line: CommandLine, api: FakeApi) -> None:
    errors = [{"pointer": "/usd", "detail": "This must be greater than 0"}]
    api.troubles = [answering(problem(422, "Invalid input", "Correct the fields.", errors=errors))]

    result = command_line.run("budget", "set", "--tokens", "none", "--usd", "-1")

    assert (result.exit_code, "/usd: This must be greater than 0" in result.stderr) == (1, True)


def test_only_an_admin_sets_it(command_line: CommandLine, api: FakeApi) -> None:
    keys = {"AGENTJOBS_API_KEY": API_KEY}

    shown = command_line.run("budget", "show", env=keys)
    refused = command_line.run("budget", "set", "--tokens", "1", env=keys)

    assert (shown.exit_code, refused.exit_code) == (0, 1)
    assert "this needs the role admin" in refused.stderr
    assert api.limits == {"tokens": None, "usd": None}


def test_json_is_the_answer_itself(command_line: CommandLine) -> None:
    shown = command_line.json("budget", "show")
    answer = command_line.json("budget", "set", "--tokens", "7", "--usd", "none")

    assert (shown["month"], shown["spent"]) == ("2026-03", {"tokens": 18, "usd": "0.500000"})
    assert answer["limits"] == {"tokens": 7, "usd": None}
