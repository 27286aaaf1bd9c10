"""A receiver of webhooks on this machine. It checks signatures by the standard's words and not by our code."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.ports import free_port

SECRET = "whsec_" + base64.b64encode(b"the first secret of the tests 01").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"the other secret of the tests 02").decode()


@dataclass(frozen=True)
class Received:
    """One request."""

    head: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The header webhook-id."""
        return self.headers["webhook-id"]

    @property
    def document(self) -> dict[str, Any]:
        """The body."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    def is_signed_with(self, secret: str) -> bool:
        """Whether one of the signatures is this secret's, over id, timestamp and body."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = b".".join([self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body])
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """Answers each request with the status that `answer` says; further headers go with it."""

    port: int
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[Received], Awaitable[None]] | None = None
    """What happens between a request and its answer."""

    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            request = await _read(reader)
            self.received.append(request)
            if self.before is not None:
                await self.before(request)
            lines = [f"HTTP/1.1 {self.status} Told", *(f"{name}: {value}" for name, value in self.headers.items())]
            writer.write("\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    text = (await reader.readuntil(b"\r\n\r\n")).decode()
    head, *lines = text.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(head, headers, body)


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver while the block runs."""
    receiver = Receiver(free_port())
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", receiver.port, ssl=tls)
    try:
        yield receiver
    finally:
        server.close()
