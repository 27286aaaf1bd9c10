"""Where alerts go: takes each, and has it on record by its id.

python -m tests.chaos.storm.alert_judge --port 8003 --log FILE
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from pathlib import Path

from agentjobs.stack.ports import LOOPBACK
from tests.chaos.storm.judge_log import JudgeLog


async def _serve(log: JudgeLog, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.strip().split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        await reader.readexactly(int(headers.get("content-length", "0")))
        log.write("alert", id=headers.get("webhook-id", ""))
        writer.write(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n")
        await writer.drain()
    writer.close()


async def main(port: int, log: Path) -> None:
    """Serve until killed."""
    with JudgeLog(log) as lines:
        await asyncio.start_server(lambda reader, writer: _serve(lines, reader, writer), LOOPBACK, port)
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--log", type=Path, required=True)
    given = options.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(main(given.port, given.log))
