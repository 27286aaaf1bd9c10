"""Ours: by the HTTP API, as any user."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle

from benchmarks.peers.http_wire import Connection
from benchmarks.peers.model import request_text
from benchmarks.peers.system import Job

CONNECTIONS = 32
ACCEPTED = 202
OK = 200


class Client:
    """Over kept connections, spread over the API's processes."""

    def __init__(self, ports: list[int], key: str, agent: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for _, port in zip(range(CONNECTIONS), cycle(ports), strict=False):
            self._free.put_nowait(Connection(port, headers))
        self._agent = agent
        self._ids: dict[str, str] = {}

    async def submit(self, job: Job) -> None:
        """Under the job's own key."""
        text = request_text(job.id, job.steps, job.seconds)
        body = json.dumps({"agent": self._agent, "input": {"text": text}}).encode()
        status, answer = await self._ask("POST", "/v1/jobs", body, f'Idempotency-Key: "{job.id}"\r\n')
        if status != ACCEPTED:
            raise RuntimeError(f"a submission was answered with {status}: {answer.decode()}")
        self._ids[job.id] = json.loads(answer)["id"]

    async def is_over(self, job_id: str) -> bool:
        """By its status."""
        status, answer = await self._ask("GET", f"/v1/jobs/{self._ids[job_id]}")
        if status != OK:
            raise RuntimeError(f"a look was answered with {status}")
        job = json.loads(answer)
        if job["state"] in {"dead", "cancelled", "discarded"}:
            raise RuntimeError(f"{job_id} is {job['state']}: {job['failure']}")
        return bool(job["state"] == "succeeded")

    async def until_over(self, job_id: str) -> None:
        """By its stream of events, which ends with it."""
        async with self._connection() as connection:
            await connection.until_end(f"/v1/jobs/{self._ids[job_id]}/events", OK)

    async def _ask(self, method: str, path: str, body: bytes = b"", more: str = "") -> tuple[int, bytes]:
        async with self._connection() as connection:
            return await connection.ask(method, path, body, more)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        connection = await self._free.get()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        finally:
            self._free.put_nowait(connection)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Of the tenant that the environment has a key of."""
    ports = [int(port) for port in os.environ["BENCH_API_PORTS"].split(",")]
    yield Client(ports, os.environ["BENCH_API_KEY"], os.environ["BENCH_AGENT"])
