"""The environment with the peers' packages: made from the lock when it is not there, or the lock has changed."""

from __future__ import annotations

import asyncio
import hashlib
import sys

from benchmarks.peers.system import CHECKOUT, PEERS_PYTHON

LOCK = CHECKOUT / "requirements-bench.lock"
PLACE = PEERS_PYTHON.parents[1]
READY = PLACE / ".ready"


def is_ready() -> bool:
    """Whether it was made from this very lock."""
    return READY.exists() and READY.read_text("utf-8") == _digest()


async def make() -> None:
    """By hash, as our own. Raises RuntimeError when it cannot be had."""
    READY.unlink(missing_ok=True)
    await carried_out(sys.executable, "-m", "venv", "--clear", str(PLACE))
    pip = (str(PEERS_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    await carried_out(*pip, "--require-hashes", "-r", str(LOCK))
    READY.write_text(_digest(), encoding="utf-8")


def _digest() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


async def carried_out(*argv: str) -> None:
    """A command, to its end. Raises RuntimeError when it fails."""
    process = await asyncio.create_subprocess_exec(*argv, cwd=CHECKOUT)
    if await process.wait():
        raise RuntimeError(f"`{' '.join(argv)}` failed")
