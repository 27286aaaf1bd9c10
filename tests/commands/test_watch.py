import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import dead, job_document, succeeded
from tests.commands.fake_api import FakeApi, answering, problem, refused

WAITING = job_document(
    "a",
    "retry_wait",
    step="step-1.model",
    attempt=2,
    next_attempt_at="2026-03-01T12:00:09Z",
    failure={"category": "rate_limited", "reason": "rate_limited", "message": "slow down", "step": "step-1.model"},
)
RUNNING = job_document("a", "running", step="step-1.model", attempt=1)


def test_one_line_for_each_change(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING, RUNNING, WAITING, WAITING, succeeded("a")]

    result = command_line.run("watch", "a")

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "2026-03-01T11:59:00Z  running  step-1.model  attempt 1"
    assert "retry_wait  step-1.model  attempt 2  rate_limited: slow down" in lines[1]
    assert "next attempt 2026-03-01T12:00:09Z (in 9s)" in lines[1]
    assert "succeeded" in lines[2]
    assert lines[3].split(maxsplit=1) == ["answer", "A ticket is open."]


def test_the_pause_grows_while_nothing_changes(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING] * 9 + [WAITING, succeeded("a")]

    command_line.run("watch", "a")

    pauses = command_line.waits
    assert pauses[:9] == sorted(pauses[:9])
    assert (pauses[8], pauses[9]) == (2.0, 0.25)


@pytest.mark.parametrize("state", ["cancelled", "discarded"])
def test_other_ends_exit_1(command_line: CommandLine, api: FakeApi, state: str) -> None:
    api.jobs["a"] = [job_document("a", state)]

    assert command_line.run("watch", "a").exit_code == 1


def test_dead_ends_the_watch_and_says_what_to_do(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING, dead("a")]

    result = command_line.run("watch", "a")

    assert result.exit_code == 1
    assert "dead show a" in result.stdout


def test_ctrl_c_exits_130_without_a_traceback(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING]
    command_line.interrupt_after = 2

    result = command_line.run("watch", "a")

    assert result.exit_code == 130
    assert result.stderr == "the job goes on: `python starter.py watch a` follows it again\n"


def test_an_api_that_restarts_meanwhile_is_waited_for(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING, succeeded("a")]
    api.troubles = [api._answer, refused, refused, answering(problem(503, "Service Unavailable", "starting"))]

    assert command_line.run("watch", "a").exit_code == 0


def test_no_api_at_the_start_is_said_at_once(command_line: CommandLine, api: FakeApi) -> None:
    api.troubles = [refused] * 10

    result = command_line.run("watch", "a")

    assert (result.exit_code, len(api.requests)) == (3, 1)


def test_json_is_the_final_job_and_progress_goes_to_stderr(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [RUNNING, succeeded("a")]

    assert command_line.json("watch", "a") == succeeded("a")


def test_a_terminal_counts_down_each_second(command_line: CommandLine, api: FakeApi) -> None:
    api.jobs["a"] = [WAITING] * 6 + [succeeded("a")]

    result = command_line.run("watch", "a", env={"FORCE_COLOR": "1", "TERM": "xterm"})

    assert result.exit_code == 0
    assert "next attempt in 9s" in result.stdout
    assert max(command_line.waits) <= 1.0
