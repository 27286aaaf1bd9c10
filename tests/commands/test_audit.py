import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import Document
from tests.commands.fake_api import FakeApi


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    api.audit = [
        deed("3", "rita", "redrive", "job-1", note="the key is renewed", details={"policy": "current"}),
        deed("2", "rita", "read_dead_letter", "job-1"),
        deed("1", "adam", "create_key", "key-1"),
    ]
    return api


def deed(number: str, actor: str, action: str, target: str, **more: object) -> Document:
    known = {"id": number, "at": "2026-03-01T11:00:00Z", "actor": actor, "action": action, "target": target}
    return {**known, "note": None, "details": {}, **more}


def test_it_shows_who_did_what_to_what_and_why(command_line: CommandLine) -> None:
    lines = command_line.run("audit").stdout.splitlines()

    assert lines[0].split() == ["AT", "ACTOR", "ACTION", "TARGET", "NOTE", "DETAILS"]
    assert lines[1].split("  ")[0] == "2026-03-01T11:00:00Z"
    assert "the key is renewed" in lines[1]
    assert '{"policy": "current"}' in lines[1]
    assert len(lines) == 4


def test_it_can_be_narrowed(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("audit", "--actor", "rita", "--action", "redrive", "--target", "job-1")

    asked = dict(api.requests[0].url.params)
    assert {name: asked[name] for name in ("actor", "action", "target")} == {
        "actor": "rita",
        "action": "redrive",
        "target": "job-1",
    }
    assert len(result.stdout.splitlines()) == 2


def test_there_are_more(command_line: CommandLine) -> None:
    result = command_line.run("audit", "--limit", "2")

    assert (len(result.stdout.splitlines()), "there are more" in result.stderr) == (3, True)
    assert len(command_line.json("audit", "--all")["items"]) == 3


def test_nothing_is_on_record(command_line: CommandLine, api: FakeApi) -> None:
    api.audit = []

    assert "nothing is on record" in command_line.run("audit").stderr
