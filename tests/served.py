"""The API as a process of its own, for clients that are no coroutines of ours."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.ports import free_port
from tests.world import eventually

CHECKOUT = Path(__file__).parents[1]


@asynccontextmanager
async def served_api(database_url: str, log: Path, **settings: str) -> AsyncIterator[str]:
    """The API's address while the block runs. What it says goes to `log`."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTJOBS_")}
    ours = {
        "AGENTJOBS_DATABASE_URL": database_url,
        "AGENTJOBS_API_PORT": str(port),
        "AGENTJOBS_ENVIRONMENT": "test",
    }
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agentjobs.api"), cwd=CHECKOUT, env=kept | ours | settings, stderr=said
        )
    try:
        await eventually(lambda: _ready(process, url, log), "the API to answer")
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(process: asyncio.subprocess.Process, url: str, log: Path) -> bool:
    assert process.returncode is None, _said(log)
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(f"{url}/readyz")).status_code == 200
    except httpx.TransportError:
        return False


def _said(log: Path) -> str:
    return log.read_text("utf-8")
