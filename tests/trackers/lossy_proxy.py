"""A TCP proxy before a real server, which can lose the server's replies: the request is executed, nobody hears."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from typing import Any

import httpx

from tests.proxy import AT_ONCE_BYTES, Proxy


class LossyProxy(Proxy):
    """Passes everything on, until it is told to lose replies."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self.loses_replies = False

    def client(self) -> httpx.AsyncClient:
        """A client whose requests go through here, whatever port they name; the server sees its own address."""

        async def redirect(request: httpx.Request) -> None:
            request.url = request.url.copy_with(port=self.port)

        return httpx.AsyncClient(trust_env=False, event_hooks={"request": [redirect]})

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Only what comes back may be lost."""
        return self._pump(client, to_server, may_lose=False), self._pump(server, to_client, may_lose=True)

    async def _pump(self, source: StreamReader, sink: StreamWriter, *, may_lose: bool) -> None:
        while piece := await source.read(AT_ONCE_BYTES):
            if may_lose and self.loses_replies:
                return
            sink.write(piece)
            await sink.drain()
