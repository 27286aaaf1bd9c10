"""The servers that all share: PostgreSQL, the Temporal server as the dev stack tunes it, Redis, the model."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import asyncpg

from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.stack.children import Child, ChildSpec, Probe
from agentjobs.stack.environment import for_servers
from agentjobs.stack.info import DevKeys
from agentjobs.stack.ports import LOOPBACK, free_ports
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.probes import log_line
from agentjobs.stack.supervisor import Supervisor
from agentjobs.stack.temporal_server import temporal_server
from agentjobs.temporal import SEARCH_ATTRIBUTES, kind_of
from benchmarks.peers.system import CHECKOUT, System

OURS = "benchmarks.peers.on_agentjobs"
_numbers = count(1)
TICKETS = "CREATE TABLE bench_tickets (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"

# The default policy of the append-only file. PostgreSQL flushes at every commit; Redis loses a second at most.
REDIS = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")


@dataclass(frozen=True)
class Place:
    """What one measurement has for itself, so that nothing of an earlier one gets into it: a name for queues, and
    a database, with our tables or with the one table of tickets.
    """

    name: str
    dsn: str
    keys: DevKeys | None


@dataclass(frozen=True)
class Servers:
    """Where each is, and the processes by name."""

    home: Path
    supervisor: Supervisor
    postgres: EmbeddedPostgres
    temporal: str
    redis_port: int
    model: str
    calls: Path
    """The model's log."""

    async def place(self, system: System) -> Place:
        """A new one."""
        name = f"run{next(_numbers)}"
        await self.postgres.create_database(name)
        dsn = self.postgres.dsn(name)
        if system.module == OURS:
            return Place(name, dsn, await prepare_dev_tenant(dsn, None))
        await _with_tickets(dsn)
        if system.needs_redis:
            await _emptied(self.redis_port)
        return Place(name, dsn, None)


def has_redis() -> bool:
    """Whether there is a server to start; Debian's package `redis-server` has it."""
    return shutil.which("redis-server") is not None


@asynccontextmanager
async def running_servers(home: Path) -> AsyncIterator[Servers]:
    """Up for the length of the block, on free ports of 127.0.0.1; nothing of them is left."""
    postgres_port, temporal_port, ui_port, redis_port, model_port = free_ports(5)
    postgres = EmbeddedPostgres(home, postgres_port)
    supervisor = Supervisor(home / "logs", lambda: None)
    try:
        await postgres.install()
        attributes = {key.name: kind_of(key) for key in SEARCH_ATTRIBUTES}
        calls = home / "calls.jsonl"
        specs = [
            postgres.spec(),
            temporal_server(home / "temporal.db", temporal_port, ui_port, for_servers(os.environ), attributes),
            _model(model_port, calls),
        ]
        await supervisor.start([*specs, *([_redis(redis_port, home)] if has_redis() else [])])
        yield Servers(
            home=home,
            supervisor=supervisor,
            postgres=postgres,
            temporal=f"{LOOPBACK}:{temporal_port}",
            redis_port=redis_port,
            model=f"http://{LOOPBACK}:{model_port}",
            calls=calls,
        )
    finally:
        await supervisor.stop()
        postgres.remove()


async def _with_tickets(dsn: str) -> None:
    session = await asyncpg.connect(dsn)
    try:
        await session.execute(TICKETS)
    finally:
        await session.close()


async def _emptied(port: int) -> None:
    process = await asyncio.create_subprocess_exec("redis-cli", "-p", str(port), "flushall", stdout=DEVNULL)
    if await process.wait():
        raise RuntimeError("redis-cli could not empty the server")


def _redis(port: int, home: Path) -> ChildSpec:
    directory = home / "redis"
    return ChildSpec(
        name="redis",
        argv=("redis-server", "--bind", LOOPBACK, "--port", str(port), "--dir", str(directory), *REDIS),
        environment=for_servers(os.environ),
        ready=log_line("Ready to accept connections"),
        before_start=lambda: directory.mkdir(exist_ok=True),
    )


def _model(port: int, calls: Path) -> ChildSpec:
    arguments = ("--port", str(port), "--log", str(calls))
    return ChildSpec(
        name="model",
        argv=(sys.executable, "-m", "benchmarks.peers.model_process", *arguments),
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)},
        ready=_listening(port),
    )


def _listening(port: int) -> Probe:
    async def probe(_: Child) -> bool:
        try:
            writer = (await asyncio.open_connection(LOOPBACK, port))[1]
        except OSError:
            return False
        writer.close()
        return True

    return probe
