"""A TCP proxy before PostgreSQL that cuts a session off at the statement that carries a given text."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any

from tests.proxy import AT_ONCE_BYTES, Proxy


class Cut(StrEnum):
    """Where. In each case the client only sees that its connection ends."""

    UNHEARD = "unheard"
    """Before the statement reaches the server."""

    SENT = "sent"
    """As soon as it has been passed on."""

    ANSWERED = "answered"
    """When its answer, with the commit done, is there."""

    LATE = "late"
    """Before the statement reaches the server, which gets it when `release` is called."""

    SILENT = "silent"
    """Nothing is cut, and nothing comes back: a broken network that nobody has noticed."""


class CuttingProxy(Proxy):
    """Passes everything on, but for the next statement with the text that `cut_at` was told."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self.cut_count = 0
        self.released = asyncio.Event()
        self._text = b""
        self._cut: Cut | None = None

    def cut_at(self, text: str, cut: Cut) -> None:
        """Do this to the next statement that has this text among its parameters, once."""
        self._text, self._cut = text.encode(), cut

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Statements forth, answers back."""
        is_cut, is_silent = asyncio.Event(), asyncio.Event()
        forth = self._forth(client, to_server, to_client, is_cut, is_silent)
        return forth, self._back(server, to_client, is_cut, is_silent)

    async def _forth(
        self,
        client: StreamReader,
        to_server: StreamWriter,
        to_client: StreamWriter,
        is_cut: asyncio.Event,
        is_silent: asyncio.Event,
    ) -> None:
        while piece := await client.read(AT_ONCE_BYTES):
            cut = self._met_by(piece)
            if cut is not None:
                (is_silent if cut is Cut.SILENT else is_cut).set()
            if cut is Cut.UNHEARD:
                return
            if cut is Cut.LATE:
                to_client.close()
                await self.released.wait()
            to_server.write(piece)
            await to_server.drain()
            if cut is Cut.SENT:
                return

    def _met_by(self, piece: bytes) -> Cut | None:
        if self._cut is None or self._text not in piece:
            return None
        cut, self._cut = self._cut, None
        self.cut_count += 1
        return cut

    async def _back(
        self, server: StreamReader, to_client: StreamWriter, is_cut: asyncio.Event, is_silent: asyncio.Event
    ) -> None:
        while piece := await server.read(AT_ONCE_BYTES):
            if is_silent.is_set():
                continue
            if is_cut.is_set():
                return
            to_client.write(piece)
            await to_client.drain()
