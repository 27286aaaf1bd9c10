"""What a judge saw, one JSON object a line: on disk before the one who asked hears anything."""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeAlias

from agentjobs.stack.ports import LOOPBACK

Serve: TypeAlias = "Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]"


class JudgeLog:
    """Append-only, and flushed to disk at each line."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, **known: Any) -> None:
        """A line. `at` is of `time.time`."""
        line = json.dumps({"event": event, "at": time.time(), **known}) + "\n"
        os.write(self._descriptor, line.encode())
        os.fdatasync(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Every line; none when nothing was written."""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)


def judge(what: str | None, serving: Callable[[JudgeLog], Serve]) -> None:
    """A judge's program: it serves connections, with a log, until it is killed."""
    options = argparse.ArgumentParser(description=what)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--log", type=Path, required=True)
    given = options.parse_args()

    async def serve() -> None:
        with JudgeLog(given.log) as log:
            await asyncio.start_server(serving(log), LOOPBACK, given.port)
            await asyncio.Event().wait()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())
