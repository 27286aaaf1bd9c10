"""What open event streams cost those who submit jobs: one API process and a PostgreSQL of its own, nothing else.

python -m benchmarks.streams [--streams 1000] [--rounds 5] [--submissions 300]

Each round measures submissions without streams, with streams, and with half of them deaf, while events of the
followed jobs are written at a steady rate. The order changes from round to round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never

import httpx
import psutil
import structlog

from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.migrate import migrate
from agentjobs.stack.ports import free_port
from agentjobs.stack.postgres import EmbeddedPostgres
from benchmarks.figures import as_json, as_table
from benchmarks.stream_figures import Seen, With, compared_of, figures_of, memory_of

log = structlog.get_logger()

TENANTS = 4
SENDERS = 4
EVENTS_A_SECOND = 25
READY_SECONDS = 60
WRITE_EVENT = """
WITH job AS (UPDATE jobs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING id, event_seq)
INSERT INTO job_events (job_id, seq, type, data) SELECT id, event_seq, 'text', $2 FROM job
"""
NO_QUOTAS = "UPDATE tenants SET quota_in_flight = 0, quota_per_minute = 0, quota_queue_length = 0"


class Child:
    """The process that holds the streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, **told: Any) -> Any:
        """Its answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("the process that holds the streams was started without pipes")
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        return json.loads(await self._process.stdout.readline())


@dataclass
class Rig:
    """One API process, its ledger, and jobs of several tenants to follow."""

    ledger: Ledger
    api: psutil.Process
    port: int
    readers: Child
    keys: list[str]
    jobs: list[tuple[str, str]] = field(default_factory=list)

    async def submit(self, client: httpx.AsyncClient, key: str) -> str:
        """A job's id."""
        headers = {"Authorization": f"Bearer {key}"}
        answer = await client.post("/v1/jobs", json={"input": {"text": "My printer is on fire"}}, headers=headers)
        if answer.status_code != httpx.codes.ACCEPTED:
            raise SystemExit(f"a submission was answered with {answer.status_code}")
        return str(answer.json()["id"])

    async def follow(self, count: int) -> None:
        """So many jobs to follow."""
        keys = [self.keys[number % TENANTS] for number in range(count)]
        room = asyncio.Semaphore(SENDERS * 4)

        async def one(key: str) -> tuple[str, str]:
            async with room:
                return await self.submit(client, key), key

        async with self.client() as client:
            self.jobs = list(await asyncio.gather(*map(one, keys)))

    async def measured(self, count: int, what: With) -> Seen:
        """Submit `count` jobs, while that is open."""
        await self._open(what)
        before, began = sum(self.api.cpu_times()[:2]), time.monotonic()
        committed: dict[int, float] = {}
        writing = asyncio.create_task(self._write(committed))
        latencies = await self._submissions(count)
        seconds = time.monotonic() - began
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        cpu, memory = sum(self.api.cpu_times()[:2]) - before, self.api.memory_info().rss
        await asyncio.sleep(2)  # for the last events
        came = await self.readers.ask(report=True)
        await self.readers.ask(close=True)
        late = [moment - committed[number] for number, moment in came if number in committed]
        return Seen(latencies, seconds, cpu, memory, late)

    async def _open(self, what: With) -> None:
        if what is With.NONE:
            return
        statuses = await self.readers.ask(open=self.jobs, port=self.port)
        if statuses.pop("503", 0):
            log.warning("streams_opened_late")  # a machine that has no time for this; they were tried again
        if statuses != {"200": len(self.jobs)}:
            raise SystemExit(f"streams were answered with {statuses}")
        await self.readers.ask(report=True)
        match what:
            case With.READING:
                pass
            case With.HALF_DEAF:
                await self.readers.ask(deafen=len(self.jobs) // 2)
            case _:
                assert_never(what)

    async def _submissions(self, count: int) -> list[float]:
        async def send(client: httpx.AsyncClient, key: str) -> list[float]:
            taken = []
            for _ in range(count // SENDERS):
                began = time.monotonic()
                await self.submit(client, key)
                taken.append(time.monotonic() - began)
            return taken

        async with self.client() as client:
            sent = await asyncio.gather(*(send(client, self.keys[n % TENANTS]) for n in range(SENDERS)))
        return [one for some in sent for one in some]

    async def _write(self, committed: dict[int, float]) -> None:
        number = 0
        while True:
            # Over the whole list, so over those that read and those that do not.
            job_id, _ = self.jobs[(number * 7_919) % len(self.jobs)]
            await self.ledger.database.pool.execute(WRITE_EVENT, job_id, {"number": number, "text": "x" * 200})
            committed[number] = time.monotonic()
            number += 1
            await asyncio.sleep(1 / EVENTS_A_SECOND)

    def client(self) -> httpx.AsyncClient:
        """Keeps its connections."""
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=60)


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Rig]:
    """Everything, and nothing of it afterwards."""
    server = EmbeddedPostgres(home, free_port())
    await server.start()
    processes: list[asyncio.subprocess.Process] = []
    try:
        await migrate(server.dsn())
        ledger = await Ledger.open(server.dsn(), size=4, application_name="benchmark")
        keys = [await _key(ledger, f"tenant-{number}") for number in range(TENANTS)]
        await ledger.database.pool.execute(NO_QUOTAS)
        port = free_port()
        api = await _started(processes, "agentjobs.api", _settings(server.dsn(), port), home)
        readers = await _started(processes, "benchmarks.stream_readers", {}, home)
        rig = Rig(ledger, psutil.Process(api.pid), port, Child(readers), keys)
        await _ready(rig)
        yield rig
        await ledger.close()
    finally:
        for process in processes:
            process.kill()
            await process.wait()
        await server.stop()
        server.remove()


async def _key(ledger: Ledger, tenant: str) -> str:
    await ledger.identity.create_tenant(tenant)
    plain, _ = await ledger.identity.create_key(tenant, "ann", frozenset({Role.SUBMIT}))
    return plain


def _settings(dsn: str, port: int) -> dict[str, str]:
    return {
        "AGENTJOBS_DATABASE_URL": dsn,
        "AGENTJOBS_API_PORT": str(port),
        "AGENTJOBS_ENVIRONMENT": "test",
        "AGENTJOBS_LOG_LEVEL": "WARNING",
    }


async def _started(
    processes: list[asyncio.subprocess.Process], module: str, settings: dict[str, str], home: Path
) -> asyncio.subprocess.Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTJOBS_")}
    pipe = asyncio.subprocess.PIPE
    with (home / f"{module}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module), env=kept | settings, stdin=pipe, stdout=pipe, stderr=log, limit=2**26
        )
    processes.append(process)
    return process


async def _ready(rig: Rig) -> None:
    async with asyncio.timeout(READY_SECONDS), rig.client() as client:
        while True:
            try:
                if (await client.get("/readyz")).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


async def _main(streams: int, rounds: int, submissions: int) -> None:
    seen: dict[With, list[Seen]] = {what: [] for what in With}
    with tempfile.TemporaryDirectory(prefix="agentjobs-benchmark-") as home:
        async with running(Path(home)) as rig:
            await rig.follow(streams)
            before = await rig.measured(submissions, With.NONE)  # what is warm afterwards is so for all
            for number in range(rounds):
                order = list(With) if number % 2 else list(reversed(With))
                for what in order:
                    seen[what].append(await rig.measured(submissions, what))
                    log.info("measured", what=what, of_round=number, p50_ms=round(seen[what][-1].p(50), 1))
    figures = [figure for what in With for figure in figures_of(what, seen[what])] + compared_of(seen)
    figures += [memory_of(before, seen[With.READING], streams)]
    sys.stdout.write(f"{as_table(figures)}\n\n{as_json(figures)}\n")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--submissions", type=int, default=300)
    given = options.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left then either
    asyncio.run(_main(given.streams, given.rounds, given.submissions))
