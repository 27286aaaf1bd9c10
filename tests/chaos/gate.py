"""A TCP gate between two parts: open, or a black hole that accepts, keeps, and passes nothing, without a FIN."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentjobs.stack.ports import LOOPBACK


class Gate:
    """Passes bytes both ways while it is open."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port
        self._open = asyncio.Event()
        self._open.set()

    @classmethod
    @asynccontextmanager
    async def before(cls, target_port: int) -> AsyncIterator[Gate]:
        """A gate on a free port."""
        gate = cls(target_port)
        server = await asyncio.start_server(gate._serve, LOOPBACK, 0)
        gate.port = server.sockets[0].getsockname()[1]
        try:
            yield gate
        finally:
            server.close()

    def shut(self) -> None:
        """From now on nothing passes."""
        self._open.clear()

    def reopen(self) -> None:
        """What was kept passes now."""
        self._open.set()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(LOOPBACK, self._target_port)
        pumps = [
            asyncio.create_task(self._pump(client, to_server)),
            asyncio.create_task(self._pump(server, to_client)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for end in (to_client, to_server):
            end.close()
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(65_536):
            await self._open.wait()
            sink.write(piece)
            await sink.drain()
