"""A TCP gate between two parts: open, or a black hole that accepts, keeps, and passes nothing, without a FIN."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from typing import Any

from tests.proxy import AT_ONCE_BYTES, Proxy


class Gate(Proxy):
    """Passes bytes both ways while it is open."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self._open = asyncio.Event()
        self._open.set()

    def shut(self) -> None:
        """From now on nothing passes."""
        self._open.clear()

    def reopen(self) -> None:
        """What was kept passes now."""
        self._open.set()

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Each as long as it is open."""
        return self._pump(client, to_server), self._pump(server, to_client)

    async def _pump(self, source: StreamReader, sink: StreamWriter) -> None:
        while piece := await source.read(AT_ONCE_BYTES):
            await self._open.wait()
            sink.write(piece)
            await sink.drain()
