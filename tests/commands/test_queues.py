"""`queues`: what is pending and where, on a terminal, in a pipe and as JSON."""

import re

import httpx
import pytest

from agentjobs.domain.stages import Stage
from tests.commands.conftest import CommandLine
from tests.commands.documents import Document
from tests.commands.fake_api import FakeApi, answering

STAGES = [{"stage": stage.value, "count": 0, "oldest_at": None} for stage in Stage]
WAITING = {
    **{"job_id": "a", "step": "step-1.model", "attempt": 2, "category": "rate_limited"},
    "next_attempt_at": "2026-03-01T12:00:09Z",
}
DUE = {**WAITING, "job_id": "b", "next_attempt_at": "2026-03-01T11:00:00Z"}
OWN: Document = {
    "stages": [{"stage": "to_start", "count": 3, "oldest_at": "2026-03-01T11:58:00Z"}, *STAGES[1:]],
    "next": [DUE, WAITING],
    "installation": None,
    "links": {"self": "/v1/queues", "waiting": "/v1/waiting"},
}
INSTALLATION: Document = {
    "outbox": [{"topic": "start_job", "count": 7, "put_off": 2, "oldest_at": "2026-03-01T11:50:00Z"}],
    "workers": [
        {
            **{"identity": "worker-1", "build": "b-7", "in_hand": 4},
            **{"started_at": "2026-03-01T11:00:00Z", "oldest_at": "2026-03-01T11:59:50Z"},
        }
    ],
    "task_queues": [
        {
            **{"name": "agentjobs", "kind": "activity", "backlog": 12, "oldest_seconds": 3.2, "pollers": 1},
            "seen_at": "2026-03-01T11:59:57Z",
        }
    ],
}
ALL: Document = OWN | {"installation": INSTALLATION}


def test_in_a_pipe_it_is_plain_columns_with_times(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(httpx.Response(200, json=OWN))]

    result = command_line.run("queues")

    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "STAGE             JOBS  OLDEST                WHERE THEY ARE",
        "to_start          3     2026-03-01T11:58:00Z  accepted, in the outbox or over the running cap",
    ]
    assert lines[-3:] == [
        "NEXT  IN   STEP          ATTEMPT  AFTER",
        "b     due  step-1.model  2        rate_limited",
        "a     9s   step-1.model  2        rate_limited",
    ]
    assert api.requests[0].url.path == "/v1/queues"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_on_a_terminal_nothing_is_wider_than_it(command_line: CommandLine, api: FakeApi, width: int) -> None:
    api.troubles = [answering(httpx.Response(200, json=ALL))]
    terminal = {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm"}

    shown = command_line.run("queues", env=terminal).stdout
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()

    assert max(map(len, lines)) <= width
    for wanted in (["to_start", "3", "2m"], ["start_job", "7", "10m"], ["worker-1", "4", "10s"]):
        assert any(line.split()[:3] == wanted for line in lines), lines
    assert any(line.split()[:5] == ["agentjobs", "(activity)", "12", "3s", "1"] for line in lines)


def test_what_is_missing_in_the_installation_is_said(command_line: CommandLine, api: FakeApi) -> None:
    nobody: Document = {"outbox": [], "workers": [], "task_queues": []}
    api.troubles = [answering(httpx.Response(200, json=OWN | {"installation": nobody}))]

    told = command_line.run("queues").stderr

    assert told.splitlines() == [
        "the outbox is empty",
        "no worker is there: start one with `python worker.py`",
        "no relay has looked at a task queue yet",
    ]


def test_a_relay_that_has_not_looked_for_long_is_asked_after(command_line: CommandLine, api: FakeApi) -> None:
    old = INSTALLATION["task_queues"][0] | {"seen_at": "2026-03-01T11:00:00Z"}
    stale = OWN | {"installation": INSTALLATION | {"task_queues": [old]}}
    api.troubles = [answering(httpx.Response(200, json=ALL)), answering(httpx.Response(200, json=stale))]

    fresh, late = command_line.run("queues").stderr, command_line.run("queues").stderr

    assert fresh == ""
    assert late == "the task queues were seen 60m ago: does a relay run, and reach Temporal?\n"


def test_as_json_it_is_what_the_api_says(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [answering(httpx.Response(200, json=ALL))]

    assert command_line.json("queues") == ALL


def test_a_stage_of_a_newer_api_is_shown_as_it_is(command_line: CommandLine, api: FakeApi) -> None:
    newer = OWN | {"stages": [{"stage": "dreaming", "count": 1, "oldest_at": None}], "next": []}
    api.troubles = [answering(httpx.Response(200, json=newer))]

    assert command_line.run("queues").stdout.splitlines()[1].split() == ["dreaming", "1", "-", "-"]
