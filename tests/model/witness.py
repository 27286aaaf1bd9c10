"""A proxy before the model's server that witnesses each call, and what the server said that it cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from agentjobs.domain.budget import Usage
from agentjobs.stack.ports import LOOPBACK

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


class Witness:
    """Passes everything on, in both directions, and closes where either side closes."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.calls: list[Call] = []
        self.withheld = asyncio.Event()
        self._when: When | None = None
        self._target_port = target_port

    @classmethod
    @asynccontextmanager
    async def before(cls, target_port: int) -> AsyncIterator[Witness]:
        """Listening on a free port."""
        witness = cls(target_port)
        server = await asyncio.start_server(witness._serve, LOOPBACK, 0)
        witness.port = server.sockets[0].getsockname()[1]
        try:
            yield witness
        finally:
            server.close()

    @property
    def costs(self) -> list[Usage]:
        """What each call cost that the server answered in full."""
        return [call.usage for call in self.calls if call.usage is not None]

    def withhold(self, when: When) -> None:
        """Let the server work on the next call for which `when` holds, but pass no answer on."""
        self._when = when

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(LOOPBACK, self._target_port)
        mine: list[Call] = []  # one connection carries one call after the other
        forth = asyncio.create_task(self._requests(client, to_server, mine))
        back = asyncio.create_task(_answers(server, to_client, mine))
        await asyncio.wait((forth, back), return_when=asyncio.FIRST_COMPLETED)
        for end in (to_client, to_server):
            end.close()
        await asyncio.gather(forth, back, return_exceptions=True)

    async def _requests(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, mine: list[Call]
    ) -> None:
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


async def _answers(server: asyncio.StreamReader, to_client: asyncio.StreamWriter, mine: list[Call]) -> None:
    while piece := await server.read(65_536):
        mine[-1].answer += piece
        if not mine[-1].withheld:
            to_client.write(piece)
            await to_client.drain()
