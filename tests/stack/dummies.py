"""Stand-ins for the stack's own programs, and waiting with a deadline."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping
from signal import Signals

import psutil

from agentjobs.stack.children import ChildSpec, Probe
from agentjobs.stack.info import DevKeys
from agentjobs.stack.options import StackOptions
from agentjobs.stack.probes import http_answer, log_line

SLEEPER = "print('up', flush=True); import time; time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
API = """
import http.server, os
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["AGENTJOBS_API_PORT"])), Ready).serve_forever()
"""


def script(
    name: str,
    code: str = SLEEPER,
    environment: Mapping[str, str] | None = None,
    ready: Probe | None = None,
    grace_seconds: float = 5.0,
    start_seconds: float = 60.0,
) -> ChildSpec:
    return ChildSpec(
        name=name,
        argv=(sys.executable, "-I", "-S", "-c", code),
        environment=environment or {},
        ready=ready or log_line("up"),
        stop_signal=Signals.SIGTERM,
        grace_seconds=grace_seconds,
        start_seconds=start_seconds,
    )


def dummy_programs(options: StackOptions, environment: Mapping[str, str]) -> list[ChildSpec]:
    return [
        script("api", API, environment, http_answer(f"{options.api_url}/readyz")),
        script("relay", SLEEPER, environment, grace_seconds=60),
        script("worker-1", SLEEPER, environment),
    ]


async def prepare(dsn: str, kept: DevKeys | None) -> DevKeys:
    return kept or DevKeys(api_key=f"submit-{secrets.token_hex(4)}", admin_key="admin")


async def eventually(claim: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not claim():  # noqa: ASYNC110  # what is waited for happens in another process
            await asyncio.sleep(0.02)


def gone(pid: int) -> bool:
    """No process, or one that only waits to be reaped by somebody else than us."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
