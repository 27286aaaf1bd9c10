"""A whole stack to break: two workers, a relay, an API, PostgreSQL and Temporal, each a process of its own."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from temporalio.client import Client as TemporalClient

from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.children import FAILPOINTS, ChildSpec
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack
from tests.chaos.client import Client
from tests.chaos.evidence import Operation
from tests.e2e.conftest import CHECKOUT, options_for, started

WORKERS = ("worker-1", "worker-2")
VICTIM = "worker-1"
LOOK_SECONDS = 0.05


class Fruitless(AssertionError):
    """Waited in vain."""


async def until(
    look: Callable[[], Awaitable[bool]], what: str, seconds: float, every_seconds: float = LOOK_SECONDS
) -> None:
    """Look again and again until it holds."""
    end = time.monotonic() + seconds
    while not await look():
        if time.monotonic() > end:
            raise Fruitless(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(every_seconds)


@dataclass
class Rig:
    """A running stack, and what a run does to it."""

    stack: Stack
    ledger: Ledger
    temporal: TemporalClient
    home: Path
    marks: dict[str, int] = field(default_factory=dict)
    """How long each log was when the run began."""

    def client(self, history: list[Operation], key: str | None = None) -> Client:
        """A client of the API; without a key, the admin's."""
        return Client((self.stack.info.api,), key or self.stack.info.admin_key, history)

    async def arm(self, child: str, failpoints: str) -> None:
        """Start the child anew with these failpoints; its own successor after a crash has none."""
        keeper = self.stack._supervisor.keeper(child)
        await self.stack.stop_child(child)
        keeper.spec = with_failpoints(keeper.spec, failpoints)
        await self.stack.start_child(child)

    async def all_ready(self) -> None:
        """Every child is up, as before a run."""
        for child in list(self.stack.info.pids):
            async with asyncio.timeout(60):
                await self.stack.until_ready(child)

    def pid(self, child: str) -> int:
        """The process of now."""
        return self.stack.info.pids[child]

    def freeze(self, child: str) -> int:
        """SIGSTOP; returns which process that was."""
        pid = self.pid(child)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def thaw(self, pid: int) -> None:
        """SIGCONT, if it still is there."""
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)

    def mark_logs(self) -> None:
        """From here on, what is logged belongs to the next run."""
        self.marks = {path.name: path.stat().st_size for path in self.stack.home.logs.glob("*.log")}

    def logged(self, child: str) -> str:
        """What the child has logged in this run."""
        path = self.stack.home.logs / f"{child}.log"
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(self.marks.get(path.name, 0))
            return file.read().decode(errors="replace")

    def logs(self) -> dict[str, str]:
        """All of it, by child."""
        return {path.stem: self.logged(path.stem) for path in self.stack.home.logs.glob("*.log")}

    def fired(self, failpoint: str) -> bool:
        """Whether the failpoint was reached and did its deed, in whichever child."""
        events = (event for text in self.logs().values() for event in _events(text))
        return any(event.get("event") == "failpoint_fired" and event["failpoint"] == failpoint for event in events)

    async def value(self, statement: str, *values: object) -> Any:
        """One value from the ledger's database."""
        return await self.ledger.database.pool.fetchval(statement, *values)


@asynccontextmanager
async def running_rig(home: Path, workers: int = 2) -> AsyncIterator[Rig]:
    """A stack in this home for the length of the block."""
    async with started(options_for(home, workers=workers)) as stack:
        ledger = await Ledger.open(stack.info.database, size=4, application_name="chaos")
        try:
            yield Rig(stack, ledger, await TemporalClient.connect(stack.info.temporal), home)
        finally:
            for pid in stack.info.pids.values():  # a frozen child would not hear that it is to stop
                os.kill(pid, signal.SIGCONT)
            await ledger.close()
    EmbeddedPostgres(home, 1).remove()


def with_failpoints(spec: ChildSpec, failpoints: str) -> ChildSpec:
    """The same child with these failpoints and no others."""
    return replace(spec, environment={**spec.environment, FAILPOINTS: failpoints})


def child_of(failpoint: str) -> str:
    """The child in which a failpoint is reached, by the package whose source names it."""
    hosts = {"agentjobs/outbox": "relay", "agentjobs/api": "api"}
    for package, child in hosts.items():
        if any(f'"{failpoint}"' in path.read_text("utf-8") for path in (CHECKOUT / package).rglob("*.py")):
            return child
    return VICTIM


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # cut off by a kill
                continue
