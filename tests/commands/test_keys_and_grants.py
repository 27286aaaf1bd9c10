import json

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, FakeApi


def test_the_new_key_alone_stands_on_stdout(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run(
        "keys", "create", "--tenant", "acme", "--user", "ann", "--role", "submit", "--role", "review"
    )

    assert (result.exit_code, result.stdout) == (0, "ajk_secret\n")
    assert json.loads(api.requests[0].content) == {"tenant": "acme", "user": "ann", "roles": ["submit", "review"]}
    assert api.requests[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"


def test_a_key_may_submit_when_no_role_is_named(command_line: CommandLine, api: FakeApi) -> None:
    created = command_line.json("keys", "create", "--user", "ann", "--expires-in", "60")

    assert (created["key"], created["roles"]) == ("ajk_secret", ["submit"])
    assert json.loads(api.requests[0].content) == {"user": "ann", "roles": ["submit"], "expires_in_seconds": 60}


def test_keys_are_listed_without_the_key(command_line: CommandLine) -> None:
    command_line.run("keys", "create", "--user", "ann")

    result = command_line.run("keys", "list")

    assert result.stdout.splitlines()[1].split() == [
        "key-1",
        "dev",
        "ann",
        "submit",
        "2026-03-01T12:00:00Z",
        "-",
        "-",
    ]
    assert "ajk_" not in result.stdout


def test_revoke(command_line: CommandLine, api: FakeApi) -> None:
    command_line.run("keys", "create", "--user", "ann")

    assert command_line.json("keys", "revoke", "key-1") == {"id": "key-1", "revoked": True}
    assert api.keys["key-1"]["revoked_at"]
    assert command_line.run("keys", "revoke", "key-9").exit_code == 1


def test_grants_come_and_go(command_line: CommandLine, api: FakeApi) -> None:
    arguments = ("--user", "ann", "--action", "tickets:create")

    assert command_line.run("grants", "add", *arguments).stdout == "granted: ann tickets:create\n"
    assert [grant["user"] for grant in command_line.json("grants", "list", "--user", "ann")["items"]] == ["ann"]
    assert command_line.run("grants", "revoke", *arguments).exit_code == 0
    assert command_line.run("grants", "revoke", *arguments).exit_code == 1
    assert command_line.run("grants", "list").stderr == "no grants\n"


def test_a_submit_key_is_told_which_role_it_lacks(command_line: CommandLine) -> None:
    result = command_line.run("grants", "list", env={"AGENTJOBS_API_KEY": "ajk_submit"})

    assert result.exit_code == 1
    assert "this needs the role admin" in result.stderr
    assert "AGENTJOBS_ADMIN_KEY" in result.stderr
