"""The small model's server as a child process, and what it says that it has done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx

from agentjobs.domain.budget import Usage
from agentjobs.stack.ports import LOOPBACK
from tests.ports import free_port

CHECKOUT: Final = Path(__file__).parents[2]
PYTHON: Final = CHECKOUT / ".venv-model" / "bin" / "python"
NAME: Final = "smollm2"
SLOTS: Final = 2
"""Requests that are worked on at a time."""

_PROGRAM: Final = Path(__file__).with_name("small_model.py")
_PATIENCE_SECONDS: Final = 60


class ModelServer:
    """A server of its own on a free port."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self._log = log
        self._http = httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{self.port}", trust_env=False)
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    @asynccontextmanager
    async def running(cls, log: Path) -> AsyncIterator[ModelServer]:
        """A server that answers; its process is gone afterwards."""
        server = cls(log)
        try:
            await server._start()
            yield server
        finally:
            await server._stop()

    async def metrics(self) -> dict[str, float]:
        """The server's own counters by name."""
        text = (await self._http.get("/metrics")).text
        pairs = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
        return {name.removeprefix("llamacpp:"): float(value) for name, value in pairs}

    async def served(self) -> Usage:
        """All tokens that it has read (from its cache too) and written."""
        counted = await self.metrics()
        read = counted["prompt_tokens_total"] + counted["prompt_tokens_cached_total"]
        return Usage(tokens_in=int(read), tokens_out=int(counted["tokens_predicted_total"]))

    async def _start(self) -> None:
        if not PYTHON.exists():
            raise RuntimeError("there is no .venv-model: run `make test-model`")
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(str(PYTHON), str(_PROGRAM), str(self.port), NAME, str(SLOTS)),
                stdin=asyncio.subprocess.PIPE,  # its end is what stops the server, should this process be killed
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await self._answers():
                assert self._process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.05)

    async def _stop(self) -> None:
        await self._http.aclose()
        if self._process is not None and self._process.returncode is None:
            # Its own end waits for what it is writing, which nobody reads any more.
            self._process.kill()
            await self._process.wait()

    async def _answers(self) -> bool:
        try:
            return (await self._http.get("/health")).status_code == 200
        except httpx.HTTPError:
            return False
