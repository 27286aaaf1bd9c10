"""Keeps the children of a stack: started in stages, kept alive, stopped in reverse."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from agentjobs.stack.children import Child, ChildSpec
from agentjobs.stack.errors import StackError
from agentjobs.stack.keeper import Keeper


class Supervisor:
    """All children of one stack. `changed` is called whenever a process has come or gone for good."""

    def __init__(self, logs: Path, changed: Callable[[], None]) -> None:
        self._logs = logs
        self._changed = changed
        self._stages: list[list[Keeper]] = []

    @property
    def children(self) -> list[Child]:
        """The last process of each child that is to run: a crashed one is listed until its successor is there."""
        return [keeper.child for keeper in self._keepers() if keeper.child is not None]

    @property
    def pids(self) -> dict[str, int]:
        """Which process is which."""
        return {child.spec.name: child.pid for child in self.children}

    async def start(self, stage: Sequence[ChildSpec]) -> None:
        """Start children that do not need each other, and return when all are ready; raises ChildFailedError."""
        keepers = [Keeper(spec, self._logs, self._changed) for spec in stage]
        self._stages.append(keepers)
        try:
            async with asyncio.TaskGroup() as group:
                for keeper in keepers:
                    group.create_task(keeper.begin())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def stop(self) -> None:
        """Stop everything, what was started last first. From the first moment on nothing is restarted."""
        for keeper in self._keepers():
            await keeper.let_go()
        while self._stages:
            await asyncio.gather(*(keeper.end() for keeper in self._stages[-1]))
            self._stages.pop()

    def kill_now(self) -> None:
        """SIGKILL for everything: for whoever cannot wait for `stop`, which then finds nothing left to do."""
        for keeper in self._keepers():
            keeper.kill()

    def keeper(self, name: str) -> Keeper:
        """The keeper of one child."""
        for keeper in self._keepers():
            if keeper.spec.name == name:
                return keeper
        raise StackError(f"no child is called {name}: there are {', '.join(self.pids)}")

    def _keepers(self) -> list[Keeper]:
        return [keeper for stage in self._stages for keeper in stage]
