import json

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, API_KEY, FakeApi


def test_show_tells_limits_and_what_is_in_use(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("quota", "show")

    assert result.stdout.splitlines() == [
        "tenant        dev",
        "in flight     limit 5, 2 of ann",
        "per minute    limit 120, 3 of ann",
        "queue length  no limit, 4 of the tenant",
        "running       limit 200, 1 of the tenant",
    ]


def test_a_limit_that_is_not_named_stays(command_line: CommandLine, api: FakeApi) -> None:
    api.quota["own"] |= {"per_minute": 7}

    result = command_line.run("quota", "set", "--tenant", "acme", "--in-flight", "50")

    read, written = api.requests
    assert result.exit_code == 0
    assert json.loads(written.content) == {
        "in_flight": 50,
        "per_minute": 7,
        "queue_length": None,
        "running": 200,
    }
    assert [dict(one.url.params) for one in (read, written)] == [{"tenant": "acme"}] * 2


def test_of_another_tenant_nothing_is_said_of_the_callers_own_use(command_line: CommandLine, api: FakeApi) -> None:
    shown = [
        command_line.run("quota", *words, "--tenant", "acme").stdout.splitlines()[1:3]
        for words in (("show",), ("set", "--running", "3"))
    ]

    assert shown == [["in flight     limit 5 for each user", "per minute    limit 120 for each user"]] * 2


def test_none_lifts_a_limit_and_default_takes_the_installations(command_line: CommandLine, api: FakeApi) -> None:
    api.quota["own"] |= {"queue_length": 9}

    command_line.run("quota", "set", "--in-flight", "None", "--queue-length", "default", "--running", "3")

    assert json.loads(api.requests[-1].content) == {
        "in_flight": 0,
        "per_minute": None,
        "queue_length": None,
        "running": 3,
    }


def test_setting_uses_the_admin_key_and_showing_another_tenants_too(
    command_line: CommandLine, api: FakeApi
) -> None:
    command_line.run("quota", "set", "--running", "3")
    command_line.run("quota", "show", "--tenant", "acme")

    assert {request.headers["Authorization"] for request in api.requests} == {f"Bearer {ADMIN_KEY}"}


def test_with_the_submit_key_alone_it_is_shown(
    command_line: CommandLine, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTJOBS_API", "http://127.0.0.1:9")
    monkeypatch.setenv("AGENTJOBS_API_KEY", API_KEY)

    result = command_line.run("quota", "show", "--json")

    assert json.loads(result.stdout) == api.quota


@pytest.mark.parametrize("words", [[], ["--tenant", "acme"], ["--in-flight", "0"], ["--per-minute", "many"]])
def test_what_cannot_be_meant_is_told_before_anything_is_asked(
    command_line: CommandLine, api: FakeApi, words: list[str]
) -> None:
    result = command_line.run("quota", "set", *words)

    assert result.exit_code == 2
    assert api.requests == []
