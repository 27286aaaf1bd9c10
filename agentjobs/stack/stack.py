"""The embedded stack: everything agentjobs needs, as children of this process, in one home directory."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from agentjobs.stack.children import ChildSpec
from agentjobs.stack.environment import for_programs, for_servers
from agentjobs.stack.home import Home
from agentjobs.stack.info import DevKeys, StackInfo
from agentjobs.stack.options import StackOptions
from agentjobs.stack.orphans import note_children, stop_orphans
from agentjobs.stack.ports import require_free
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.programs import agentjobs_programs, metrics_of
from agentjobs.stack.supervisor import Supervisor
from agentjobs.stack.temporal_server import temporal_server
from agentjobs.temporal import SEARCH_ATTRIBUTES, kind_of

# Brings the database (a DSN) to this version and returns keys that are valid in it. It is given the keys kept in
# the home, or None at the first start of a home.
Prepare = Callable[[str, DevKeys | None], Awaitable[DevKeys]]
Programs = Callable[[StackOptions, Mapping[str, str]], list[ChildSpec]]


class Stack:
    """One stack in one home; see `running_stack`."""

    def __init__(self, options: StackOptions, prepare: Prepare, programs: Programs = agentjobs_programs) -> None:
        self.home = Home(options.home)
        self._options = options
        self._prepare = prepare
        self._programs = programs
        self._postgres = EmbeddedPostgres(self.home.path, options.postgres_port)
        self._supervisor = Supervisor(self.home.logs, self._children_changed)
        self._keys: DevKeys | None = None
        self._metrics: dict[str, str] = {}
        self._published = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stack"]:
        """Up inside the block, gone after it, however the block or the start ends."""
        with self.home.held():
            await stop_orphans(self.home.children_file)
            require_free(self._options.ports)
            try:
                await self._start()
                yield self
            finally:
                await self._stop()

    @property
    def info(self) -> StackInfo:
        """What stack.json says now."""
        if self._keys is None:
            raise RuntimeError("the stack is not prepared yet")
        return StackInfo(
            api=self._options.api_url,
            console=f"{self._options.api_url}/console/",
            temporal=self._options.temporal_address,
            temporal_ui=self._options.temporal_ui_url,
            database=self._postgres.dsn(),
            pids=self._supervisor.pids,
            metrics=self._metrics,
            **self._keys.model_dump(),
        )

    async def kill(self, name: str) -> None:
        """Crash one child (kill -9) and return when it is dead; it is started again at once."""
        await self._supervisor.keeper(name).kill_and_notice()

    async def stop_child(self, name: str) -> None:
        """Stop one child and hold it down."""
        await self._supervisor.keeper(name).end()

    async def start_child(self, name: str) -> None:
        """Start a child that was held down; returns when it is ready."""
        await self._supervisor.keeper(name).begin()

    async def until_ready(self, name: str) -> None:
        """Wait for a child, for instance after `kill`."""
        await self._supervisor.keeper(name).ready.wait()

    def kill_now(self) -> None:
        """End every child at once."""
        self._supervisor.kill_now()

    async def _start(self) -> None:
        await self._postgres.install()
        await self._supervisor.start([self._postgres.spec(), self._temporal()])
        await self._postgres.create_database()
        dsn = self._postgres.dsn()
        self._keys = await self._prepare(dsn, self.home.keys())
        self.home.keep_keys(self._keys)
        programs = self._programs(self._options, for_programs(os.environ, self._options, dsn))
        self._metrics = metrics_of(programs, self._options)
        await self._supervisor.start(programs)
        self._published = True
        self._children_changed()

    async def _stop(self) -> None:
        await self._supervisor.stop()
        self._published = False
        self.home.retract()
        self.home.children_file.unlink(missing_ok=True)

    def _temporal(self) -> ChildSpec:
        return temporal_server(
            self.home.temporal_file,
            self._options.temporal_port,
            self._options.ui_port,
            for_servers(os.environ),
            {key.name: kind_of(key) for key in SEARCH_ATTRIBUTES},
        )

    def _children_changed(self) -> None:
        note_children(self.home.children_file, self._supervisor.children)
        if self._published:
            self.home.publish(self.info)


@asynccontextmanager
async def running_stack(
    options: StackOptions, prepare: Prepare, programs: Programs = agentjobs_programs
) -> AsyncIterator[Stack]:
    """A running stack for the length of the block; raises StackError when it cannot be had."""
    async with Stack(options, prepare, programs).running() as stack:
        yield stack
