"""Where alerts go: takes each, and has it on record by its id.

python -m tests.chaos.storm.alert_judge --port 8003 --log FILE
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from tests.chaos.storm.judge_log import JudgeLog, judge


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


if __name__ == "__main__":
    judge(__doc__, lambda log: partial(_serve, log))
