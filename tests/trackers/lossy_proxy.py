"""A TCP proxy before a real server, which can lose the server's replies: the request is executed, nobody hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from agentjobs.stack.ports import LOOPBACK


class LossyProxy:
    """Passes everything on, until it is told to lose replies."""

    def __init__(self, target_port: int) -> None:
        self.loses_replies = False
        self.port = 0
        self._target_port = target_port

    @classmethod
    @asynccontextmanager
    async def before(cls, target_port: int) -> AsyncIterator[LossyProxy]:
        """Listening on a free port."""
        proxy = cls(target_port)
        server = await asyncio.start_server(proxy._serve, LOOPBACK, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()

    def client(self) -> httpx.AsyncClient:
        """A client whose requests go through here, whatever port they name; the server sees its own address."""

        async def redirect(request: httpx.Request) -> None:
            request.url = request.url.copy_with(port=self.port)

        return httpx.AsyncClient(trust_env=False, event_hooks={"request": [redirect]})

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(LOOPBACK, self._target_port)
        forth = asyncio.create_task(self._pump(client, to_server, may_lose=False))
        back = asyncio.create_task(self._pump(server, to_client, may_lose=True))
        await asyncio.wait((forth, back), return_when=asyncio.FIRST_COMPLETED)
        for end in (to_client, to_server):
            end.close()
        await asyncio.gather(forth, back, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, may_lose: bool) -> None:
        while piece := await source.read(65_536):
            if may_lose and self.loses_replies:
                return
            sink.write(piece)
            await sink.drain()
