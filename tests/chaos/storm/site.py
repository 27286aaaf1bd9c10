"""The whole stack of a storm: two APIs, two relays, three workers, the servers, the judges, and every link."""

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from temporalio.client import Client as TemporalClient

from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.errors import StackError
from agentjobs.stack.keeper import Keeper
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Prepare, Stack, running_stack
from agentjobs.temporal import DATA_CONVERTER
from tests.chaos.rig import Rig
from tests.chaos.storm.links import Link
from tests.chaos.storm.parts import NEEDS, Mix, Parts
from tests.e2e.model_double import ModelDouble, Rule
from tests.providers.double_faults import Fault

READY_SECONDS = 90.0
AGAIN_SECONDS = 0.2
BAD_OUTPUT = "unreadable"
"""In the request of a job whose model never makes a proper plan."""

BUSY = "unlucky"
"""In the request of a job whose model is in trouble at first: it waits for its next attempt."""

STANDING_RULES = (
    Rule(Fault("reply", reply={"text": "no JSON at all"}), says=BAD_OUTPUT),
    Rule(Fault("status", status=500, error={"message": "broken"}), says=BUSY, stage="plan", calls=2),
)


@dataclass
class Site(Rig):
    """A rig with links between its parts."""

    parts: Parts = field(kw_only=True)
    model: ModelDouble = field(kw_only=True)
    _crashing: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    @property
    def links(self) -> dict[tuple[str, str], Link]:
        """By (client, server)."""
        return self.parts.links

    def links_to(self, server: str) -> list[Link]:
        """Everybody's."""
        return [link for (_, target), link in self.links.items() if target == server]

    async def crash(self, child: str, how: signal.Signals = signal.SIGKILL) -> int:
        """End it and start it again at once, however often it has been ended before. Returns which it was."""
        async with self._crashing[child]:  # twice at once would be two successors
            keeper = self.stack._supervisor.keeper(child)
            await keeper.let_go()
            assert keeper.child is not None
            pid = keeper.child.pid
            keeper.ready.clear()
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            await keeper.child.wait()
            await self._begun(keeper)
        return pid

    async def _begun(self, keeper: Keeper) -> None:
        while True:
            try:
                await keeper.begin()
            except StackError:  # what it needs is away as well
                if self._has_met_its_failpoint(keeper):  # under load, even before it was ready
                    keeper.spec = keeper.spec.after_a_crash()
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    def _has_met_its_failpoint(self, keeper: Keeper) -> bool:
        name, _, _ = keeper.spec.environment.get("AGENTJOBS_FAILPOINTS", "").partition("=")
        return bool(name) and self.fired(name)

    def is_stopped(self, pid: int) -> bool:
        """Whether the process stands still."""
        try:
            return psutil.Process(pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    async def heal(self) -> None:
        """Links pass, clocks are right, nobody stands still, everything is up."""
        for clock in self.parts.clocks.values():
            clock.jump(0)
        for link in self.links.values():
            link.heal()
        for child, pid in self.stack.info.pids.items():
            if child != "postgres":
                self.thaw(pid)
        for child in list(self.stack.info.pids):
            async with asyncio.timeout(READY_SECONDS):
                await self.stack.until_ready(child)


@asynccontextmanager
async def running_site(home: Path, mix: Mix, prepare: Prepare = prepare_dev_tenant) -> AsyncIterator[Site]:
    """A site in this home (a directory that is there) for the length of the block."""
    parts = Parts(home, mix)
    model = ModelDouble(parts.ports["model"], parts.rules_file, parts.log_of("model"))
    model.rule(*STANDING_RULES)
    try:
        async with AsyncExitStack() as opened:
            for client, servers in NEEDS.items():
                for server in servers:
                    link = await opened.enter_async_context(Link.before(parts.ports[server]))
                    parts.links[client, server] = link
            stack = await opened.enter_async_context(running_stack(parts.options, prepare, parts.programs))
            opened.callback(_thaw_all, stack)
            ledger = await Ledger.open(stack.info.database, size=4, application_name="chaos")
            opened.push_async_callback(ledger.close)
            temporal = await TemporalClient.connect(stack.info.temporal, data_converter=DATA_CONVERTER)
            yield Site(stack, ledger, temporal, home, parts=parts, model=model)
    finally:
        EmbeddedPostgres(home, 1).remove()


def _thaw_all(stack: Stack) -> None:
    for pid in stack.info.pids.values():  # a frozen child would not hear that it is to stop
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
