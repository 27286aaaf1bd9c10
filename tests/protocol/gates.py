"""A place at which something stands still until the test lets it go on: a frozen process, a slow destination."""

import asyncio

from agentjobs.failpoints import Failpoints


class Gate:
    """Says when it is reached, and is passed when it is open."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    async def pass_through(self) -> None:
        """Wait for it to be opened."""
        self.reached.set()
        await self.open.wait()


class Frozen(Failpoints):
    """Failpoints of a process that freezes at one of them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.gate = Gate()
        self._name = name

    async def reach(self, name: str) -> None:
        """Stand still at the one place."""
        if name == self._name:
            await self.gate.pass_through()
