"""`python starter.py redrives`: what is sent, and how the answers are told."""

import json
from typing import Any

import httpx
import pytest

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, FakeApi, answering, problem, refused

Document = dict[str, Any]

NO_ITEMS = dict.fromkeys(
    ("waiting", "asked", "recovered", "died_again", "cancelled", "no_verdict", "not_taken", "skipped"), 0
)
TRIED = {
    "letters": 3,
    "by_kind": [{"reason": "timeout", "agent": "support-triage", "count": 3}],
    "effects_done": {"create_ticket": 2},
    "in_doubt": [{"id": "j-9", "reason": "outcome_unknown", "steps": ["step-1.pay"], "unsafe": True}],
    "in_doubt_count": 1,
    "left_out": {"in_doubt": 1, "in_another_redrive": 4, "beyond_limit": 0},
    "needs_approval": True,
}


def redrive(**changed: Any) -> Document:
    return {
        "id": "r-1",
        "state": "running",
        "stage": "share",
        "stopped_because": None,
        "created_by": "rita",
        "note": "it is back",
        "filter": {"reason": "timeout"},
        "policy": "original",
        "again": False,
        "canary": 1,
        "share": 0.1,
        "rate_per_second": 2.0,
        "failure_limit": 0.2,
        "verdict_seconds": 600,
        "letters": 200,
        "asked": 40,
        "items": {**NO_ITEMS, "recovered": 38, "died_again": 2, "skipped": 10, "waiting": 150},
        "skipped": {"discarded": 10},
        "approval": {"needed": False, "by": None, "at": None, "note": None},
        "created_at": "2026-03-01T11:00:00Z",
        "finished_at": None,
        "links": {"self": "/v1/redrives/r-1", "temporal_ui": None},
        **changed,
    }


def answers(api: FakeApi, document: Document, status: int = 200) -> None:
    api.troubles.append(answering(httpx.Response(status, json=document)))


def sent(api: FakeApi) -> Document:
    body: Document = json.loads(api.requests[-1].content)
    return body


def test_start_sends_what_the_options_say(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, redrive(), 202)

    result = command_line.run(
        *("redrives", "start", "--reason", "timeout", "--agent", "a", "--policy-version", "3"),
        *("--died-after", "2026-03-01", "--died-before", "2026-03-01T10:00:00+02:00", "--letter", "j-1"),
        *("--letter", "j-2", "--note", "it is back", "--policy", "current", "--again", "--canary", "2"),
        *("--share", "0.5", "--rate", "3", "--failure-limit", "0.3", "--verdict-seconds", "60", "--key", "monday"),
    )

    request = api.requests[-1]
    assert result.exit_code == 0, result.output
    assert (request.method, request.url.path) == ("POST", "/v1/redrives")
    assert request.headers["Authorization"] == f"Bearer {ADMIN_KEY}"
    assert request.headers["Idempotency-Key"] == "monday"
    assert sent(api) == {
        "filter": {
            "reason": "timeout",
            "agent": "a",
            "policy_version": "3",
            "ids": ["j-1", "j-2"],
            "died_before": "2026-03-01T10:00:00+02:00",
            "died_after": "2026-03-01T00:00:00+00:00",
        },
        "note": "it is back",
        "policy": "current",
        "again": True,
        "canary": 2,
        "share": 0.5,
        "rate_per_second": 3.0,
        "failure_limit": 0.3,
        "verdict_seconds": 60,
    }
    assert result.stdout == "r-1 running: 200 letters\n"
    assert "redrives show r-1" in result.stderr


def test_start_names_what_waits_for_a_second_person(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, redrive(state="awaiting_approval"), 202)

    result = command_line.run("redrives", "start", "--all", "--note", "n")

    assert (result.stdout, sent(api)["filter"]) == ("r-1 awaiting_approval: 200 letters\n", {})
    assert "redrives approve r-1" in result.stderr


def test_each_start_has_a_key_of_its_own(command_line: CommandLine, api: FakeApi) -> None:
    for _ in range(2):
        answers(api, redrive(), 202)
        command_line.run("redrives", "start", "--all", "--note", "n")

    keys = {request.headers["Idempotency-Key"] for request in api.requests}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--note", "n"), "say which letters"),
        (("--all", "--reason", "bug", "--note", "n"), "say which letters"),
        (("--all",), "--note"),
        (("--all", "--note", "n", "--died-before", "yesterday"), "no time looks like this"),
        (("--all", "--note", "n", "--key", ""), "printable ASCII"),
    ],
)
def test_what_is_not_clear_is_not_sent(
    command_line: CommandLine, api: FakeApi, arguments: tuple[str, ...], told: str
) -> None:
    result = command_line.run("redrives", "start", *arguments)

    assert (result.exit_code, api.requests) == (2, [])
    assert told in result.stderr


def test_a_dry_run_tells_what_would_be_done(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, TRIED)

    result = command_line.run("redrives", "start", "--all", "--dry-run")

    assert result.exit_code == 0
    assert sent(api)["dry_run"] is True
    assert result.stdout.splitlines() == [
        "REASON   LETTERS  AGENT",
        "timeout  3        support-triage",
        "IN DOUBT  UNSAFE  REASON           STEPS",
        "j-9       yes     outcome_unknown  step-1.pay",
        "3 letters would be redriven",
        "done already, and not repeated: create_ticket 2",
        "left out, since they would die again of an effect in doubt: 1",
        "left out, in another bulk redrive: 4",
        "a second person would have to approve it",
    ]


def test_show_has_a_line_of_progress(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, redrive(state="stopped", stopped_because="too_many_failed"))

    lines = command_line.run("redrives", "show", "r-1").stdout.splitlines()

    assert "state            stopped" in lines
    assert "stopped because  too_many_failed" in lines
    assert "passed over      10 discarded" in lines
    assert "pace             1 first, then 10%, then the rest; 2 a second; stops above 20% failures" in lines
    progress = lines[-1].replace("\u2588", "#")
    assert progress == f"[{'#' * 7}{'.' * 23}] 50 of 200: 38 recovered, 2 died again, 10 skipped, 150 waiting"


def test_list_shows_the_newest_first(command_line: CommandLine, api: FakeApi) -> None:
    rows = [redrive(), redrive(id="r-0", state="completed", asked=200)]
    answers(api, {"items": rows, "next_cursor": None})

    lines = command_line.run("redrives", "list", "--state", "running").stdout.splitlines()

    assert [line.split()[:4] for line in lines] == [
        ["ID", "STATE", "ASKED", "LETTERS"],
        ["r-1", "running", "40", "200"],
        ["r-0", "completed", "200", "200"],
    ]
    assert api.requests[-1].url.params["state"] == "running"


def test_an_empty_list_says_so(command_line: CommandLine, api: FakeApi) -> None:
    answers(api, {"items": [], "next_cursor": None})

    assert command_line.run("redrives", "list").stderr == "no bulk redrives\n"


@pytest.mark.parametrize("word", ["pause", "resume", "cancel", "approve"])
def test_a_word_is_sent_and_the_state_told(command_line: CommandLine, api: FakeApi, word: str) -> None:
    answers(api, redrive(state="paused"))

    more = ("--note", "seen") if word == "approve" else ()
    result = command_line.run("redrives", word, "r-1", *more)

    request = api.requests[-1]
    assert result.stdout.splitlines()[0] == "r-1 is paused"
    assert (request.method, request.url.path) == ("POST", f"/v1/redrives/r-1/{word}")
    assert request.content == (b'{"note":"seen"}' if word == "approve" else b"")


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (("start", "--all", "--dry-run"), TRIED),
        (("start", "--all", "--note", "n"), redrive()),
        (("show", "r-1"), redrive()),
        (("pause", "r-1"), redrive()),
        (("list",), {"items": [redrive()], "next_cursor": None}),
    ],
)
def test_json_is_the_answer_itself(
    command_line: CommandLine, api: FakeApi, arguments: tuple[str, ...], document: Document
) -> None:
    answers(api, document)

    assert command_line.json("redrives", *arguments) == document


def test_a_refusal_is_told_and_is_the_exit_code(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(problem(403, "Second person needed", "another reviewer approves it")), refused]

    said_no = command_line.run("redrives", "approve", "r-1", "--note", "n")
    not_there = command_line.run("redrives", "show", "r-1")

    assert (said_no.exit_code, not_there.exit_code) == (1, 3)
    assert "another reviewer approves it" in said_no.stderr


def test_an_id_that_is_none_is_not_sent(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("redrives", "cancel", "../jobs")

    assert (result.exit_code, api.requests) == (2, [])
