"""Tables on terminals of several widths and in a pipe, with text that is wider than its characters are many."""

import re
from typing import Any

import httpx
import pytest
from rich.cells import cell_len

from tests.commands.conftest import CommandLine
from tests.commands.documents import attempt_document, dead, job_document, letter_document, waiting
from tests.commands.fake_api import FakeApi, answering

ID = "5ebe3ad2-42b0-406f-92fa-350836107f23"
WIDE = "予約が二重に請求されました 👩‍👩‍👧 — " + "ขอบคุณ é́ " * 8
JOBS = [dead(ID, WIDE), job_document(ID, "waiting_approval", step="step-1.create_ticket", agent="サポート窓口")]
APPROVAL = {
    **{"job_id": ID, "step": "step-1.create_ticket", "tool": "create_ticket", "fingerprint": "f"},
    **{"state": "requested", "is_open": True, "arguments": {"subject": WIDE}},
    **{"requested_at": "2026-03-01T11:00:00Z", "expires_at": "2026-03-01T13:00:00Z"},
}
REPORT: dict[str, Any] = {
    "open": [
        {
            **{"reason": "access_denied", "agent": "サポート窓口", "policy_version": "1", "count": 12},
            "oldest_at": "2026-03-01T11:00:00Z",
        }
    ],
    **{"by_state": {"open": 12}, "open_count": 12, "ages": {"under_1_hour": 12}, "unit": "hour", "flow": []},
    **{"oldest_at": "2026-03-01T11:00:00Z", "as_of": "2026-03-01T12:00:00Z", "since": "2026-02-28T12:00:00Z"},
    **{"outcomes": {}, "recovery": {"median_seconds": None, "p90_seconds": None}},
}
WAITS = {"items": [waiting(ID, "2026-03-01T12:05:00Z", agent=WIDE)], "counts": [], "total": 1, "links": {}}
TABLES: dict[str, Any] = {
    "list": {"items": JOBS, "next_cursor": None},
    f"attempts {ID}": {"items": [attempt_document(outcome="failed", category="bug", message=WIDE)]},
    "waiting": WAITS,
    "dead list": {"items": [letter_document(ID, message=WIDE)], "next_cursor": None},
    "dead report": REPORT,
    "approvals list": {"items": [APPROVAL], "next_cursor": None},
}


def shown(command_line: CommandLine, api: FakeApi, words: str, **environment: str) -> list[str]:
    """The table as lines, without colours."""
    api.troubles = [answering(httpx.Response(200, json=TABLES[words]))]
    result = command_line.run(*words.split(), env=environment)
    assert result.exit_code == 0, result.output
    return re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", TABLES)
def test_each_row_is_one_line_that_fits(command_line: CommandLine, api: FakeApi, words: str, width: int) -> None:
    lines = shown(
        command_line, api, words, TTY_COMPATIBLE="1", NO_COLOR="1", COLUMNS=str(width), TERM="xterm-256color"
    )

    table = [line for line in lines if line.strip()][: 1 + len(TABLES[words].get("items", [1]))]
    assert max(cell_len(line.rstrip()) for line in table) <= width, lines
    first = "access_denied" if words == "dead report" else "step-1." if words.startswith("attempts") else ID
    assert all(line.startswith(first) for line in table[1:]), lines


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_state_is_shown_before_the_reason(command_line: CommandLine, api: FakeApi, width: int) -> None:
    lines = shown(command_line, api, "list", TTY_COMPATIBLE="1", NO_COLOR="1", COLUMNS=str(width), TERM="xterm")

    assert [line.split()[1] for line in lines[:3]] == ["STATE", "dead", "waiting_approval"]


@pytest.mark.parametrize("words", TABLES)
def test_in_a_pipe_columns_are_whole_and_begin_where_their_names_do(
    command_line: CommandLine, api: FakeApi, words: str
) -> None:
    header, row, *_ = shown(command_line, api, words, COLUMNS="60")

    name = re.findall(r"\S+(?: \S+)*", header)[-1]
    offset = cell_len(header[: header.rindex(name)])
    before = ""
    for character in row:
        if cell_len(before) >= offset:
            break
        before += character
    assert cell_len(before) == offset
    assert before.endswith("  ")
    assert "…" not in row
