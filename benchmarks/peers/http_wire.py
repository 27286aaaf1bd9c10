"""HTTP on one kept connection, with as little work as it takes: a client that is busy measures itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping


class Connection:
    """To one server on this machine; one request at a time."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._port = port
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "x", **headers}.items())
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"", more: str = "") -> tuple[int, bytes]:
        """Status and body. more: further header lines, each with its line end.

        The server closes connections that nobody used for a while; what it has not taken is asked anew.
        """
        try:
            return await self._asked(method, path, body, more)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return await self._asked(method, path, body, more)

    async def _asked(self, method: str, path: str, body: bytes, more: str) -> tuple[int, bytes]:
        reader, writer = await self._opened()
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._headers}{more}{length}\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        return int(head.split(" ", 2)[1]), await reader.readexactly(size)

    async def until_end(self, path: str, status: int) -> None:
        """Read a stream to its end, on a new connection. Raises RuntimeError for another status."""
        self.close()
        reader, writer = await self._opened()
        writer.write(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if int(head.split(" ", 2)[1]) != status:
            raise RuntimeError(f"{path}: {head.splitlines()[0]}")
        while size := int(await reader.readline() or b"0", 16):
            await reader.readexactly(size + 2)
        self.close()  # as the server does after a stream

    def close(self) -> None:
        """The next request opens it anew."""
        if self._line is not None:
            self._line[1].close()
            self._line = None

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._line is None or self._line[1].is_closing():
            self._line = await asyncio.open_connection("127.0.0.1", self._port)
        return self._line
