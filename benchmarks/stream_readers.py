"""A process that only holds event streams open: told what to do on stdin, a line of JSON each; answers on stdout.

{"open": [[JOB, KEY], ...], "port": N}   opens one stream each; answers how often each status came
{"deafen": N}                            the first N read nothing more
{"report": true}                         answers with what came since: the number and the moment of each event
{"close": true}                          closes them all
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

RECEIVE_BYTES = 4_096
"""Small, so that a client that stops reading is felt by the server soon."""

AT_ONCE = 50
TRIES = 5
RETRY_SECONDS = 2
UNAVAILABLE = "503"
_NUMBER = re.compile(rb'"number":(\d+)')


@dataclass
class Readers:
    """The streams. Events are told apart by the number that their writer gave them."""

    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _reading: list[asyncio.Task[None]] = field(default_factory=list)
    _came: list[tuple[int, float]] = field(default_factory=list)

    async def open(self, wanted: list[tuple[str, str]], port: int) -> dict[str, int]:
        """How often each status was answered."""
        room = asyncio.Semaphore(AT_ONCE)
        statuses: Counter[str] = Counter()

        async def open_one(job: str, key: str) -> None:
            async with room:
                for _ in range(TRIES):
                    status = await self._open_one(job, key, port)
                    statuses[status] += 1
                    if status != UNAVAILABLE:
                        return
                    await asyncio.sleep(RETRY_SECONDS)

        await asyncio.gather(*(open_one(job, key) for job, key in wanted))
        return statuses

    async def _open_one(self, job: str, key: str, port: int) -> str:
        own = socket.socket()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        own.setblocking(False)
        await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=own, limit=RECEIVE_BYTES)
        ask = f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
        writer.write(ask.encode())
        status = (await reader.readline()).split()[1].decode()
        if status != "200":
            writer.close()
            return status
        await reader.readuntil(b"event: snapshot")
        self._writers.append(writer)
        self._reading.append(asyncio.create_task(self._read(reader)))
        return status

    async def _read(self, reader: asyncio.StreamReader) -> None:
        unread = b""
        while piece := await reader.read(RECEIVE_BYTES):
            now = time.monotonic()
            unread += piece
            found = list(_NUMBER.finditer(unread))
            self._came += [(int(one[1]), now) for one in found]
            unread = unread[found[-1].end() :] if found else unread[-32:]

    def deafen(self, count: int) -> None:
        """These read nothing more, and stay connected."""
        for task in self._reading[:count]:
            task.cancel()

    def report(self) -> list[tuple[int, float]]:
        """What came since the last report."""
        came, self._came = self._came, []
        return came

    async def close(self) -> None:
        """All of them."""
        for task in self._reading:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        self._writers, self._reading = [], []
        await asyncio.sleep(0)


async def _main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    readers = Readers()
    while line := await asyncio.to_thread(sys.stdin.readline):
        told = json.loads(line)
        answer: object = None
        if "open" in told:
            answer = await readers.open(told["open"], told["port"])
        elif "deafen" in told:
            readers.deafen(told["deafen"])
        elif "report" in told:
            answer = readers.report()
        else:
            await readers.close()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main())
