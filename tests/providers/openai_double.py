"""A double of OpenAI's API, raw enough to misbehave: what a test scripts, it does, and it writes down what it saw.

It serves `/v1/chat/completions` (whole and streamed), `/v1/responses` (whole, streamed and in the background) and
`/v1/responses/ID`. Without a script it is a sensible model: see double_mind.py. What it can be told to do: see
double_faults.py. As a process of its own, with a log of one JSON line for each request and each close:

    python -m tests.providers.openai_double --port 8001 --script FILE --log FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentjobs.stack.ports import LOOPBACK
from tests.providers.double_faults import Fault, carried_out
from tests.providers.double_wire import Asked, Line, read_request


@dataclass
class OpenAIDouble:
    """The server's memory. `faults` are used up in order, one a request; the last stays if `repeat_last`."""

    faults: deque[Fault] = field(default_factory=deque)
    repeat_last: bool = False
    asked: list[Asked] = field(default_factory=list)
    log: Path | None = None
    port: int = 0
    at_once: int = 0
    most_at_once: int = 0
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Background responses by id: `document`, and how many `looks` it takes until it is done."""

    @classmethod
    @asynccontextmanager
    async def running(
        cls, *faults: Fault, repeat_last: bool = False, port: int = 0, log: Path | None = None
    ) -> AsyncIterator[OpenAIDouble]:
        """Serve on 127.0.0.1 for the length of the block."""
        double = cls(deque(faults), repeat_last, log=log)
        handlers: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                handlers.add(task)
                task.add_done_callback(handlers.discard)
            with suppress(asyncio.CancelledError):  # the end of the block
                await double._serve(reader, writer)

        server = await asyncio.start_server(serve, LOOPBACK, port, limit=2**24)
        double.port = server.sockets[0].getsockname()[1]
        try:
            yield double
        finally:
            server.close()
            for task in list(handlers):
                task.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)
            await server.wait_closed()

    @property
    def base_url(self) -> str:
        """As OPENAI_BASE_URL takes it."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    def next_fault(self) -> Fault | None:
        """What to do with the request at hand."""
        if not self.faults:
            return None
        return self.faults[0] if self.repeat_last and len(self.faults) == 1 else self.faults.popleft()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        try:
            asked = await read_request(reader)
            if asked is None:
                return
            self.asked.append(asked)
            self._note("asked", asked, body=asked.body)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                await self._answered(asked, line)
            finally:
                self.at_once -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answered(self, asked: Asked, line: Line) -> None:
        # Requests are not pipelined and every answer ends its connection: so the first sign of anything more from
        # the client is that it has gone.
        answering = asyncio.create_task(carried_out(self, asked, line, self.next_fault()))
        leaving = asyncio.create_task(line.left())
        done, _ = await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving in done and not answering.done():
            asked.left_at = time.monotonic()
            self._note("client_left", asked)
        for task in (answering, leaving):
            task.cancel()
        for outcome in await asyncio.gather(answering, leaving, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionError):
                raise outcome

    def _note(self, event: str, asked: Asked, **more: Any) -> None:
        if self.log is not None:
            entry = {"event": event, "at": time.time(), "method": asked.method, "path": asked.path, **more}
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def faults_of(lines: Iterable[str]) -> tuple[Fault, ...]:
    """A script: one fault a line, as JSON, such as {"kind": "status", "status": 429}; "sensible" for none."""
    return tuple(Fault(**json.loads(line)) for line in lines if line.strip())


async def _main(arguments: argparse.Namespace) -> None:
    lines = arguments.script.read_text(encoding="utf-8").splitlines() if arguments.script else []
    async with OpenAIDouble.running(
        *faults_of(lines), repeat_last=arguments.repeat_last, port=arguments.port, log=arguments.log
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--script", type=Path)
    options.add_argument("--log", type=Path)
    options.add_argument("--repeat-last", action="store_true")
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(options.parse_args()))
