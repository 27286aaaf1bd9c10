"""What a judge saw, one JSON object a line: on disk before the one who asked hears anything."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self


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
