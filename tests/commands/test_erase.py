import json

import httpx
import pytest

from tests.commands.conftest import CommandLine
from tests.commands.fake_api import ADMIN_KEY, FakeApi, answering, problem

ERASURE = {
    "id": "e1",
    "user": None,
    "job_id": "j1",
    "requested_by": "adam",
    "created_at": "2026-03-01T12:00:00Z",
    "completed_at": None,
    "jobs": {"total": 1, "erased": 1, "not_ended": 0, "workflows_left": 1},
    "left_outside": [
        {"job_id": "j1", "step": "s", "tool": "create_ticket", "key": "agent-job-j1/s", "state": "begun"}
    ],
    "left_outside_count": 1,
    "not_covered": ["Backups."],
    "links": {"self": "/v1/erasures/e1"},
}


def told(api: FakeApi, status: int = 202, **changes: object) -> None:
    api.troubles.append(answering(httpx.Response(status, json={**ERASURE, **changes})))


def test_a_job_is_erased_with_the_admin_key(command_line: CommandLine, api: FakeApi) -> None:
    told(api)

    result = command_line.run("erase", "job", "j1")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "id            e1",
        "of            job j1",
        "state         under way",
        "jobs          1 of 1 erased, 0 have not ended yet",
        "workflows     1 to be deleted",
        "left outside  1 effects at other destinations",
        "  create_ticket agent-job-j1/s (begun)",
    ]
    assert "erase show e1" in result.stderr
    assert (api.requests[0].method, api.requests[0].url.path) == ("DELETE", "/v1/jobs/j1")
    assert api.requests[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"


def test_a_user_is_erased_by_name(command_line: CommandLine, api: FakeApi) -> None:
    told(api, user="ann", job_id=None)

    result = command_line.run("erase", "user", "ann")

    assert "of            user ann" in result.stdout
    assert json.loads(api.requests[0].content) == {"user": "ann"}


def test_what_is_completed_is_said_to_be(command_line: CommandLine, api: FakeApi) -> None:
    told(api, 200, completed_at="2026-03-01T12:01:00Z")

    result = command_line.run("erase", "show", "e1")

    assert "state         completed" in result.stdout
    assert not result.stderr


def test_json_is_the_apis_own(command_line: CommandLine, api: FakeApi) -> None:
    told(api)

    assert command_line.json("erase", "job", "j1") == ERASURE


def test_a_refusal_is_told(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles.append(answering(problem(409, "job_is_live", "The job is running: cancel it, then erase it.")))

    result = command_line.run("erase", "job", "j1")

    assert (result.exit_code, "cancel it" in result.stderr) == (1, True)


@pytest.mark.parametrize("arguments", [("job", "a/b"), ("show", "a b"), ("job",), ()])
def test_what_is_no_id_is_wrong_usage(command_line: CommandLine, api: FakeApi, arguments: tuple[str, ...]) -> None:
    assert command_line.run("erase", *arguments).exit_code == 2
    assert not api.requests
