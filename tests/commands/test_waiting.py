import re

import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import job_document, waiting
from tests.commands.fake_api import ADMIN_KEY, FakeApi

ID = "01234567-89ab-cdef-0123-456789abcdef"
UI = "http://127.0.0.1:8233/namespaces/default/workflows?query=JobState"


@pytest.fixture
def api() -> FakeApi:
    failure = {"category": "unavailable", "reason": "unavailable", "message": "the tracker is away", "step": "x"}
    api = FakeApi()
    api.jobs = {
        "runs": [job_document("runs", "running")],
        "tomorrow": [waiting("tomorrow", "2026-03-02T13:00:00Z")],
        ID: [waiting(ID, "2026-03-01T12:05:30Z")],
        "overdue": [waiting("overdue", "2026-03-01T11:59:59Z", failure=failure, attempt=1)],
    }
    return api


def test_what_waits_says_for_what_and_until_when(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("waiting")

    header, *rows = [re.split(r"\s{2,}", line) for line in result.stdout.splitlines()[:4]]
    assert header == ["ID", "IN", "STEP", "AGENT", "ATTEMPT", "UNTIL", "WAITS FOR"]
    assert [[row[0], row[1], *row[4:]] for row in rows] == [
        ["overdue", "due", "1", "2026-03-01T11:59:59Z", "unavailable: the tracker is away"],
        [ID, "5m", "2", "2026-03-01T12:05:30Z", "rate_limited: slow down"],
        ["tomorrow", "25h", "2", "2026-03-02T13:00:00Z", "rate_limited: slow down"],
    ]
    assert api.requests[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"


def test_each_kind_of_trouble_is_counted(command_line: CommandLine) -> None:
    lines = command_line.run("waiting").stdout.splitlines()[4:]

    assert lines == [
        "unavailable: 1 job, the first is due",
        "rate_limited: 2 jobs, the first goes on in 5m",
    ]


def test_what_is_not_shown_is_counted_all_the_same(command_line: CommandLine, api: FakeApi) -> None:
    result = command_line.run("waiting", "--limit", "1")

    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "ID",
        "overdue",
        "unavailable:",
        "rate_limited:",
    ]
    assert "3 wait in all" in result.stderr
    assert api.requests[0].url.params["limit"] == "1"


def test_nothing_waits(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs = {}

    result = command_line.run("waiting")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no job waits for another attempt\n")


def test_the_view_of_the_temporal_ui_is_told_where_there_is_one(command_line: CommandLine, api: FakeApi) -> None:
    without = command_line.run("waiting").stderr

    api.temporal_ui = UI

    assert without == ""
    assert command_line.run("waiting").stderr == f'in the Temporal UI: JobState = "retry_wait"  {UI}\n'


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["ID", "IN", "STEP", "AGENT", "WAITS FOR"]),
        (100, ["ID", "IN", "STEP", "AGENT", "ATTEMPT", "UNTIL", "WAITS FOR"]),
        (200, ["ID", "IN", "STEP", "AGENT", "ATTEMPT", "UNTIL", "WAITS FOR"]),
    ],
)
def test_a_terminal_keeps_the_id_and_what_it_waits_for(
    command_line: CommandLine, width: int, columns: list[str]
) -> None:
    terminal = {"TTY_COMPATIBLE": "1", "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}

    shown = re.sub(r"\x1b\[[012]?m", "", command_line.run("waiting", env=terminal).stdout).splitlines()

    assert re.split(r"\s{2,}", shown[0].rstrip()) == columns
    assert max(map(len, shown)) <= width
    assert shown[2].startswith(f"{ID}  5m ")
    assert "rate_li" in shown[2]
    if "UNTIL" in columns:
        assert [re.search(r"11:59:59Z|12:05:30Z|2026-03-02", line) is not None for line in shown[1:4]] == [
            True
        ] * 3


def test_json_is_the_answer_itself(command_line: CommandLine, api: FakeApi) -> None:
    answer = command_line.json("waiting")

    assert [job["id"] for job in answer["items"]] == ["overdue", ID, "tomorrow"]
    assert answer["items"][1] == api.jobs[ID][0]
    assert (answer["total"], answer["counts"][0]["count"]) == (3, 1)


@pytest.mark.parametrize("limit", ["0", "201", "x"])
def test_a_limit_that_is_none_is_wrong_usage(command_line: CommandLine, api: FakeApi, limit: str) -> None:
    assert command_line.run("waiting", "--limit", limit).exit_code == 2
    assert not api.requests
