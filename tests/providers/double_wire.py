"""HTTP by hand, so that it can be broken at any byte."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any


@dataclass
class Asked:
    """A request, as it came in. Times are of `time.monotonic`."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)
    left_at: float | None = None
    """When the client closed the connection before it had its whole answer."""


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request; None when there is none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path.partition("?")[0], headers, json.loads(body) if body else None)


class Line:
    """The connection to one client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def left(self) -> None:
        """Returns when the client has closed its side."""
        await self._reader.read(1)

    async def whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """An answer of one piece."""
        await self._send(self._head(status, {"Content-Length": str(len(body)), **(headers or {})}) + body)

    async def begin(self, headers: dict[str, str] | None = None) -> None:
        """The head of a stream of events."""
        kinds = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self._send(self._head(200, {**kinds, **(headers or {})}))

    async def event(self, data: str, name: str | None = None) -> None:
        """One event of the stream."""
        lines = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
        encoded = lines.encode("utf-8", "surrogatepass")
        await self._send(f"{len(encoded):x}\r\n".encode() + encoded + b"\r\n")

    async def end(self) -> None:
        """The proper end of the stream."""
        await self._send(b"0\r\n\r\n")

    def reset(self) -> None:
        """Break the connection with a RST."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        lines = {
            "Content-Type": "application/json",
            "Date": format_datetime(datetime.now(UTC), usegmt=True),
            "Connection": "close",
            **headers,
        }
        return (f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode()
