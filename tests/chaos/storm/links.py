"""The link between two processes: a TCP proxy that passes, slows, holds, swallows, loses and cuts."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.proxy import AT_ONCE_BYTES, Proxy

COMMIT = b"COMMIT"
RESET = struct.pack("ii", 1, 0)  # linger for no time: a close is a RST


@dataclass(eq=False)
class Connection:
    """One connection through a link, as both of its directions see it."""

    to_client: StreamWriter
    to_server: StreamWriter
    over: asyncio.Event = field(default_factory=asyncio.Event)
    is_dead: bool = False
    """Half open: what is sent arrives nowhere, and nobody says so."""

    unanswered_since: float | None = None
    """When the client first sent something into a dead connection."""

    loses_reply: bool = False
    passes_bytes: int | None = None
    """So many of the server's bytes, and then it is cut."""

    def reset(self) -> None:
        """A RST to both ends."""
        for end in (self.to_client, self.to_server):
            raw = end.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            end.transport.abort()


class Link(Proxy):
    """Between one process and one server. What happened on it is counted by kind in `fired`."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self.fired: Counter[str] = Counter()
        self.noticed_seconds: list[float] = []
        """How long clients sat at a dead connection with a question, until they closed it."""

        self.latency_seconds = 0.0
        self.reply_loss = 0.0
        self.commits_to_cut = 0
        self.random = Random(0)
        self._passable = asyncio.Event()
        self._passable.set()
        self._swallows = False
        self._connections: set[Connection] = set()

    @property
    def open_count(self) -> int:
        """Connections that stand now."""
        return len(self._connections)

    def hold(self) -> None:
        """A partition: nothing passes, and what is sent arrives after it."""
        self._passable.clear()
        self.fired["held"] += len(self._connections)

    def swallow(self) -> None:
        """Every connection is half open from now on, for good; new ones too, until `heal`."""
        self._swallows = True
        for connection in self._connections:
            connection.is_dead = True
            self.fired["half open"] += 1

    def reset(self) -> None:
        """Break every connection."""
        for connection in list(self._connections):
            connection.reset()
            self.fired["reset"] += 1

    def cut_after(self, sent_bytes: int) -> None:
        """Each connection passes so many bytes of the server's, and is cut within them."""
        for connection in self._connections:
            connection.passes_bytes = sent_bytes

    def forget(self) -> None:
        """What has happened until now is another storm's."""
        self.fired.clear()
        self.noticed_seconds.clear()

    def heal(self) -> None:
        """Everything passes. What was dead stays so."""
        self.latency_seconds = self.reply_loss = 0.0
        self.commits_to_cut = 0
        self._swallows = False
        self._passable.set()
        for connection in self._connections:
            connection.passes_bytes = None

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Questions and replies of one connection."""
        connection = Connection(to_client, to_server, is_dead=self._swallows)
        self._connections.add(connection)
        return self._questions(client, connection), self._replies(server, connection)

    async def _questions(self, client: StreamReader, connection: Connection) -> None:
        try:
            while piece := await client.read(AT_ONCE_BYTES):
                await self._delay()
                if connection.is_dead:
                    connection.unanswered_since = connection.unanswered_since or time.monotonic()
                    continue
                self._mark(connection, piece)
                connection.to_server.write(piece)
                await connection.to_server.drain()
        finally:
            self._forget(connection)

    async def _replies(self, server: StreamReader, connection: Connection) -> None:
        while piece := await server.read(AT_ONCE_BYTES):
            await self._delay()
            if connection.is_dead:
                continue
            if connection.loses_reply:
                self.fired["reply lost"] += 1
                connection.reset()
                return
            if connection.passes_bytes is not None:
                connection.passes_bytes -= len(piece)
                if connection.passes_bytes <= 0:
                    self.fired["cut"] += 1
                    connection.reset()
                    return
            connection.to_client.write(piece)
            await connection.to_client.drain()
        if connection.is_dead:  # the server went away: of that, too, nobody hears
            await connection.over.wait()

    async def _delay(self) -> None:
        if self.latency_seconds:
            self.fired["slow"] += 1
            await asyncio.sleep(self.latency_seconds)
        await self._passable.wait()

    def _mark(self, connection: Connection, piece: bytes) -> None:
        if self.reply_loss and self.random.random() < self.reply_loss:
            connection.loses_reply = True
        if self.commits_to_cut and COMMIT in piece:
            self.commits_to_cut -= 1
            self.fired["commit"] += 1
            connection.loses_reply = True

    def _forget(self, connection: Connection) -> None:
        if connection.unanswered_since is not None:
            self.noticed_seconds.append(time.monotonic() - connection.unanswered_since)
        connection.over.set()
        self._connections.discard(connection)
