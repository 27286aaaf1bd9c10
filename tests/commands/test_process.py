"""What only a real process shows: pipes, signals, locales, sockets."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.commands.conftest import CommandLine
from tests.commands.documents import job_document, succeeded
from tests.commands.fake_api import FakeApi, answering, problem

ROOT = Path(__file__).parents[2]


class Server:
    """The fake API behind a real socket."""

    def __init__(self, api: FakeApi) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = httpx.Request(
                    self.command, f"http://x{self.path}", headers=dict(self.headers), content=content
                )
                response = api.handle(request)
                self.send_response(response.status_code)
                for name in ("Content-Type", "Retry-After"):
                    if name in response.headers:
                        self.send_header(name, response.headers[name])
                self.send_header("Content-Length", str(len(response.content)))
                self.end_headers()
                self.wfile.write(response.content)

            do_POST = do_GET  # noqa: N815  # http.server calls it so

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server(api: FakeApi, command_line: CommandLine) -> Iterator[Server]:
    server = Server(api)
    command_line.write_stack_file(server.url)
    yield server
    server.close()


def shell(script: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "AGENTJOBS_HOME": str(home),
        "starter": f"{sys.executable} {ROOT}/starter.py",
        **env,
    }
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


def test_a_reader_that_stops_reading_is_no_traceback(
    command_line: CommandLine, api: FakeApi, server: Server
) -> None:
    api.jobs = {f"j-{number}": [job_document(f"j-{number}")] for number in range(2000)}

    done = shell("$starter list --all | head -1; exit ${PIPESTATUS[0]}", command_line.home)

    assert (done.returncode, done.stderr) == (141, "")
    assert done.stdout.startswith("ID")


def test_a_full_disk_is_one_line_and_1(command_line: CommandLine, api: FakeApi, server: Server) -> None:
    api.jobs["a"] = [job_document("a")]

    done = shell("$starter status a --json > /dev/full", command_line.home)

    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


def test_a_locale_that_is_not_utf_8_gets_question_marks(
    command_line: CommandLine, api: FakeApi, server: Server
) -> None:
    api.jobs["a"] = [succeeded("a", "größer")]

    done = shell("$starter status a", command_line.home, PYTHONIOENCODING="ascii")

    assert (done.returncode, "gr??er" in done.stdout) == (0, True)


def test_nobody_at_the_address_says_how_to_start_it(command_line: CommandLine) -> None:
    command_line.write_stack_file("http://127.0.0.1:1")

    done = shell("$starter list", command_line.home, HTTP_PROXY="http://127.0.0.1:9")

    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "does not answer" in done.stderr
    assert "python starter.py dev" in done.stderr


def test_closed_standard_input_is_one_line(command_line: CommandLine) -> None:
    done = shell("$starter submit - <&-", command_line.home)

    assert (done.returncode, done.stderr) == (2, "error: standard input is closed\n")


def interrupted(home: Path, api: FakeApi, requests: int, *arguments: str) -> tuple[int, str, str]:
    """Press Ctrl-C when the API has been asked so many times."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "starter.py"), *arguments],
        env={**os.environ, "AGENTJOBS_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 20
    while len(api.requests) < requests and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=20)
    return process.returncode, out, told


def test_ctrl_c_ends_a_watch(command_line: CommandLine, api: FakeApi, server: Server) -> None:
    api.jobs["a"] = [job_document("a", "running")]

    code, _, told = interrupted(command_line.home, api, 2, "watch", "a")

    assert (code, told) == (130, "the job goes on: `python starter.py watch a` follows it again\n")


def test_ctrl_c_ends_a_batch_at_once_and_keeps_its_ids(
    command_line: CommandLine, api: FakeApi, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help"}\n' * 100)
    over_quota = answering(problem(429, "Too Many Requests", "5 jobs in flight", {"Retry-After": "60"}))
    api.troubles = [api._answer] + [over_quota] * 1000

    code, out, told = interrupted(command_line.home, api, 9, "submit", "--file", str(tmp_path / "requests.jsonl"))

    assert (code, out, "Traceback" in told) == (130, "job-1\n", False)
    assert "1 job accepted" in told
    assert "the lines after were not sent" in told


def test_a_batch_whose_reader_stops_is_no_traceback(
    command_line: CommandLine, api: FakeApi, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "requests.jsonl").write_text('{"text": "help"}\n' * 300)

    done = shell(
        f"$starter submit --file {tmp_path}/requests.jsonl | head -1; exit ${{PIPESTATUS[0]}}", command_line.home
    )

    assert (done.returncode, done.stdout.count("\n"), "Traceback" in done.stderr) == (141, 1, False)
