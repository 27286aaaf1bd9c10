"""A TCP proxy before a real server: what passes, and how, is for those built on it to say."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

from agentjobs.stack.ports import LOOPBACK

AT_ONCE_BYTES = 65_536


class Proxy:
    """Closes both sides where either one closes."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port

    @classmethod
    @asynccontextmanager
    async def before(cls, target_port: int) -> AsyncIterator[Self]:
        """Listening on a free port."""
        proxy = cls(target_port)
        server = await asyncio.start_server(proxy._serve, LOOPBACK, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """What happens to the bytes of one connection, in each direction."""
        raise NotImplementedError

    async def _serve(self, client: StreamReader, to_client: StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection(LOOPBACK, self._target_port)
        except OSError:  # nobody listens there now: whoever came hears so
            to_client.close()
            return
        directions = self.forth_and_back(client, to_server, server, to_client)
        pumps = [asyncio.create_task(direction) for direction in directions]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for end in (to_client, to_server):
            end.close()
        await asyncio.gather(*pumps, return_exceptions=True)
