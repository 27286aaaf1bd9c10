"""A system that runs: its processes, and the one that hands jobs in."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from agentjobs.stack.children import ChildSpec
from agentjobs.stack.environment import for_programs
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import LOOPBACK, free_ports
from agentjobs.stack.probes import log_line
from agentjobs.stack.supervisor import Supervisor
from benchmarks.peers import cpu
from benchmarks.peers.http_wire import Connection
from benchmarks.peers.servers import Place, Servers
from benchmarks.peers.system import CHECKOUT, Job, System

AT_ONCE = 16
"""Clients that hand jobs in."""

LIMIT_SECONDS = 600.0
LINE_LIMIT = 2**26
SECONDS_TO_STOP = 5.0
"""Ours would finish calls in flight for longer; none is when a measurement is over."""


@dataclass
class Running:
    """One system, up."""

    system: System
    servers: Servers
    place: Place
    supervisor: Supervisor
    client: asyncio.subprocess.Process
    environment: Mapping[str, str]

    def admin(self) -> Connection:
        """To our API, as the tenant's admin."""
        if self.place.keys is None:
            raise RuntimeError(f"{self.system.name} has no API of ours")
        port = int(self.environment["BENCH_API_PORTS"].split(",")[0])
        return Connection(port, {"Authorization": f"Bearer {self.place.keys.admin_key}"})

    async def batch(self, jobs: Sequence[Job], at_once: int = AT_ONCE) -> float:
        """Seconds from the first handing in to the last end. Raises RuntimeError when not all came to it."""
        answer = await self.ask("batch", jobs, at_once=at_once, limit_seconds=LIMIT_SECONDS)
        if answer["over"] != len(jobs):
            raise RuntimeError(f"{self.system.name}: {answer['over']} of {len(jobs)} jobs ended")
        return float(answer["seconds"])

    async def ask(self, do: str, jobs: Sequence[Job], **more: Any) -> dict[str, Any]:
        """The client's answer."""
        told = {"do": do, "jobs": [asdict(job) for job in jobs], **more}
        if self.client.stdin is None or self.client.stdout is None:
            raise RuntimeError("the client has no pipes")
        self.client.stdin.write(json.dumps(told).encode() + b"\n")
        line = await self.client.stdout.readline()
        if not line:
            log = self.servers.home / "logs" / f"{self.system.name}-client.log"
            raise RuntimeError(f"{self.system.name}: the client has ended; {_last_line(log)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def crash(self) -> float:
        """Kill the worker with all that it started, and start it again at once. When it was (of `time.time`)."""
        keeper = self.supervisor.keeper(f"{self.system.name}-worker")
        await keeper.let_go()
        if keeper.child is None:
            raise RuntimeError(f"{self.system.name}: there is no worker to kill")
        family = cpu.family_of(keeper.child.pid)
        at = time.time()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        await keeper.child.wait()
        await keeper.begin()
        return at

    @property
    def worker_bytes(self) -> int:
        """Memory of the worker."""
        return cpu.bytes_of(self.supervisor.pids[f"{self.system.name}-worker"])

    async def value(self, statement: str, *arguments: object) -> Any:
        """One value from the measurement's own database."""
        session = await asyncpg.connect(self.place.dsn)
        try:
            return await session.fetchval(statement, *arguments)
        finally:
            await session.close()

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far, of the system's processes, of the servers, and of the client."""
        pids = {**self.servers.supervisor.pids, **self.supervisor.pids, "client": self.client.pid}
        return {name: cpu.seconds_of(pid) for name, pid in pids.items()}


@asynccontextmanager
async def running(system: System, servers: Servers, **settings: str) -> AsyncIterator[Running]:
    """Up for the length of the block. settings: environment variables beside the system's own."""
    supervisor = Supervisor(servers.home / "logs", lambda: None)
    place = await servers.place(system)
    environment = _environment(system, servers, place) | dict(system.settings) | settings
    try:
        await supervisor.start(_specs(system, environment))
        async with _client(system, servers, environment) as client:
            yield Running(system, servers, place, supervisor, client, environment)
    finally:
        families = [one for pid in supervisor.pids.values() for one in cpu.family_of(pid)]
        await supervisor.stop()
        for process in families:  # such as a job's own process that left its worker's group
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _environment(system: System, servers: Servers, place: Place) -> dict[str, str]:
    """What every process of the system is given: ours as the dev stack gives it, and the addresses for all."""
    api_ports = free_ports(sum(name.startswith("api") for name in system.processes) or 1)
    options = StackOptions(temporal_port=int(servers.temporal.rpartition(":")[2]), api_port=api_ports[0])
    ours = for_programs(_kept(os.environ), options, place.dsn)
    return ours | {
        "AGENTJOBS_QUOTA_IN_FLIGHT": "0",
        "AGENTJOBS_QUOTA_PER_MINUTE": "0",
        "AGENTJOBS_QUOTA_QUEUE_LENGTH": "0",
        "AGENTJOBS_TASK_QUEUE": place.name,
        "PYTHONPATH": str(CHECKOUT),
        "OPENAI_BASE_URL": f"{servers.model}/v1",
        "OPENAI_API_KEY": "x",
        "NO_PROXY": LOOPBACK,
        "BENCH_API_PORTS": ",".join(str(port) for port in api_ports),
        "BENCH_API_KEY": place.keys.api_key if place.keys else "",
        "BENCH_DATABASE_URL": place.dsn,
        "BENCH_QUEUE": place.name,
        "BENCH_REDIS_URL": f"redis://{LOOPBACK}:{servers.redis_port}/0",
        "BENCH_MODEL_URL": servers.model,
        "BENCH_HOME": str(servers.home),
    }


def _kept(inherited: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in inherited.items() if not name.startswith("AGENTJOBS_")}


def _specs(system: System, environment: Mapping[str, str]) -> list[ChildSpec]:
    specs = []
    ports = iter(environment["BENCH_API_PORTS"].split(","))
    for name, arguments in system.processes.items():
        own = {"AGENTJOBS_API_PORT": next(ports)} if name.startswith("api") else {}
        spec = ChildSpec(
            name=f"{system.name}-{name}",
            argv=(system.python, "-P", "-m", *arguments),
            environment={**environment, **own},
            ready=log_line(system.ready[name]),
            grace_seconds=SECONDS_TO_STOP,
        )
        specs.append(spec)
    return specs


@asynccontextmanager
async def _client(
    system: System, servers: Servers, environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    with (servers.home / "logs" / f"{system.name}-client.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(system.python, "-P", "-m", "benchmarks.peers.client", system.module),
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=LINE_LIMIT,
            start_new_session=True,
        )
    try:
        if process.stdout is None or not await process.stdout.readline():
            raise RuntimeError(f"{system.name}: the client did not start; {_last_line(Path(log.name))}")
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
