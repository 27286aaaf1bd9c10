"""`python starter.py webhooks`: what is sent, and how the answers are told."""

import json
from typing import Any

import httpx

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, FakeApi, answering, problem

Document = dict[str, Any]


def webhook(**changed: Any) -> Document:
    return {
        "id": "w-1",
        "url": "https://hooks.example.org/",
        "types": ["job.dead"],
        "description": "the desk",
        "enabled": True,
        "disabled_because": None,
        "failing_since": None,
        "created_at": "2026-03-01T11:00:00Z",
        **changed,
    }


def delivery(**changed: Any) -> Document:
    return {
        "id": "msg_1",
        "type": "job.dead",
        "job_id": "j-1",
        "state": "waiting",
        "attempts": 2,
        "last_status": 503,
        "last_error": "refused",
        "next_attempt_at": "2026-03-01T12:05:00Z",
        "created_at": "2026-03-01T11:59:00Z",
        "delivered_at": None,
        **changed,
    }


def answers(api: FakeApi, document: Document, status: int = 200) -> None:
    api.troubles.append(answering(httpx.Response(status, json=document)))


def asked(api: FakeApi) -> tuple[str, str, Document | None]:
    request = api.requests[-1]
    assert request.headers["Authorization"] == f"Bearer {ADMIN_KEY}"
    return request.method, request.url.path, json.loads(request.content) if request.content else None


def test_the_new_secret_alone_stands_on_stdout(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, webhook(secret="whsec_x"), 201)

    result = command_line.run(
        *("webhooks", "add", "https://hooks.example.org/", "--type", "job.dead", "--type", "job.succeeded"),
        *("--description", "the desk"),
    )

    body = {"url": "https://hooks.example.org/", "types": ["job.dead", "job.succeeded"], "description": "the desk"}
    assert (result.exit_code, result.stdout) == (0, "whsec_x\n")
    assert "w-1" in result.stderr
    assert asked(api) == ("POST", "/v1/webhooks", body)


def test_without_types_the_api_chooses_them(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, webhook(secret="whsec_x"), 201)

    made = command_line.json("webhooks", "add", "https://hooks.example.org/")

    assert made["secret"] == "whsec_x"
    assert asked(api) == ("POST", "/v1/webhooks", {"url": "https://hooks.example.org/"})


def test_webhooks_are_listed_with_what_is_wrong_with_them(command_line: CommandLine, api: FakeApi) -> None:
    disabled = webhook(id="w-2", enabled=False, disabled_because="gone")
    failing = webhook(id="w-3", failing_since="2026-02-28T12:00:00Z")
    answers(api, {"items": [webhook(), disabled, failing]})

    result = command_line.run("webhooks", "list")

    lines = result.stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "CREATED", "TYPES", "DESCRIPTION", "URL"]
    assert [line[: line.index("2026")].split() for line in lines[1:]] == [
        ["w-1", "enabled"],
        ["w-2", "disabled:", "gone"],
        ["w-3", "retrying"],
    ]


def test_deliveries_show_the_last_answer_and_the_next_attempt(command_line: CommandLine, api: FakeApi) -> None:
    away = delivery(id="msg_2", last_status=None, last_error="unreachable", state="failed", next_attempt_at=None)
    answers(api, {"items": [delivery(), away], "next_cursor": None})

    result = command_line.run("webhooks", "deliveries", "w-1")

    first, second = (line.split() for line in result.stdout.splitlines()[1:])
    assert first == [
        *("msg_1", "waiting", "job.dead", "j-1", "2", "503", "2026-03-01T12:05:00Z", "2026-03-01T11:59:00Z")
    ]
    assert second[5:7] == ["unreachable", "-"]
    assert asked(api)[:2] == ("GET", "/v1/webhooks/w-1/deliveries")


def test_rotate_test_and_replay_say_what_was_asked_for(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, webhook(secret="whsec_y"))
    rotated = command_line.run("webhooks", "rotate", "w-1", "--overlap", "60")
    rotation = asked(api)
    answers(api, delivery(type="webhook.test"), 202)
    tested = command_line.run("webhooks", "test", "w-1")
    testing = asked(api)
    answers(api, delivery(), 202)
    replayed = command_line.run("webhooks", "replay", "w-1", "msg_1")

    assert (rotated.stdout, rotation) == (
        "whsec_y\n",
        ("POST", "/v1/webhooks/w-1/rotate-secret", {"overlap_seconds": 60}),
    )
    assert (tested.stdout, testing) == (
        "to be sent: msg_1 (webhook.test)\n",
        ("POST", "/v1/webhooks/w-1/test", None),
    )
    assert replayed.stdout == "to be sent: msg_1 (job.dead)\n"
    assert asked(api) == ("POST", "/v1/webhooks/w-1/deliveries/msg_1/replay", None)


def test_enable_and_remove(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, webhook())
    enabled = command_line.run("webhooks", "enable", "w-1")
    enabling = asked(api)
    api.troubles.append(answering(httpx.Response(204)))
    removed = command_line.json("webhooks", "remove", "w-1")

    assert (enabled.stdout, enabling) == ("enabled: w-1\n", ("POST", "/v1/webhooks/w-1/enable", None))
    assert (removed, asked(api)) == ({"id": "w-1", "removed": True}, ("DELETE", "/v1/webhooks/w-1", None))


def test_what_the_api_refuses_is_told(command_line: CommandLine, api: FakeApi) -> None:
    errors = [{"pointer": "/url", "detail": "This cannot be told: a webhook goes by https."}]
    api.troubles.append(answering(problem(422, "Invalid input", "Correct the fields.", errors=errors)))

    result = command_line.run("webhooks", "add", "http://hooks.example.org/")

    assert result.exit_code == 1
    assert "a webhook goes by https" in result.stderr


def test_an_id_that_is_none_is_not_sent(command_line: CommandLine, api: FakeApi) -> None:
    results = [
        command_line.run("webhooks", "remove", "../keys/k-1"),
        command_line.run("webhooks", "replay", "w-1", "a/b"),
    ]

    assert [result.exit_code for result in results] == [2, 2]
    assert api.requests == []
