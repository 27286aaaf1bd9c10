"""A proxy before the model's server that witnesses each call, and what the server said that it cost."""

from __future__ import annotations

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from agentjobs.domain.budget import Usage
from tests.proxy import AT_ONCE_BYTES, Proxy

_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_READ: Final = re.compile(rb'"prompt_tokens": *(\d+)')
_WRITTEN: Final = re.compile(rb'"completion_tokens": *(\d+)')

When = Callable[[], Awaitable[bool]]


@dataclass
class Call:
    """One request that reached the server."""

    request: bytes
    withheld: bool = False
    """Its answer is not passed on."""

    answer: bytearray = field(default_factory=bytearray)

    @property
    def status(self) -> int | None:
        """What the server answered; None while it has not."""
        found = _STATUS.match(self.answer)
        return int(found[1]) if found else None

    @property
    def usage(self) -> Usage | None:
        """What it cost by the server's own word."""
        read, written = _READ.findall(self.answer), _WRITTEN.findall(self.answer)
        return Usage(tokens_in=int(read[-1]), tokens_out=int(written[-1])) if read and written else None


class Witness(Proxy):
    """Passes everything on, in both directions, and closes where either side closes."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self.calls: list[Call] = []
        self.withheld = asyncio.Event()
        self._when: When | None = None

    @property
    def costs(self) -> list[Usage]:
        """What each call cost that the server answered in full."""
        return [call.usage for call in self.calls if call.usage is not None]

    def withhold(self, when: When) -> None:
        """Let the server work on the next call for which `when` holds, but pass no answer on."""
        self._when = when

    def forth_and_back(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
        """Each call is kept, and its answer with it."""
        mine: list[Call] = []  # one connection carries one call after the other
        return self._requests(client, to_server, mine), _answers(server, to_client, mine)

    async def _requests(self, client: StreamReader, to_server: StreamWriter, mine: list[Call]) -> None:
        while True:
            try:
                head = await client.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            length = _LENGTH.search(head)
            body = await client.readexactly(int(length[1])) if length else b""
            call = Call(body, withheld=await self._is_to_be_withheld())
            self.calls.append(call)
            mine.append(call)
            to_server.write(head + body)
            await to_server.drain()

    async def _is_to_be_withheld(self) -> bool:
        if self._when is None or not await self._when():
            return False
        self._when = None
        self.withheld.set()
        return True


async def _answers(server: StreamReader, to_client: StreamWriter, mine: list[Call]) -> None:
    while piece := await server.read(AT_ONCE_BYTES):
        mine[-1].answer += piece
        if not mine[-1].withheld:
            to_client.write(piece)
            await to_client.drain()
