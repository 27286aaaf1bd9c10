"""The API as a process: what it says when it cannot start, and how it ends."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.api.front import REQUEST
from tests.ports import free_port
from tests.world import eventually

CHECKOUT = Path(__file__).parents[2]
PATIENCE_SECONDS = 30


async def spawn(database_url: str, port: int, **more: str) -> Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTJOBS_")}
    settings = {
        "AGENTJOBS_DATABASE_URL": database_url,
        "AGENTJOBS_API_PORT": str(port),
        "AGENTJOBS_ENVIRONMENT": "test",
        "AGENTJOBS_QUOTA_IN_FLIGHT": "0",
        "AGENTJOBS_QUOTA_PER_MINUTE": "0",
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentjobs.api"),
        cwd=CHECKOUT,
        env=kept | settings | more,
        stdout=PIPE,
        stderr=PIPE,
    )


async def until_said(process: Process, event: str) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while line := await process.stderr.readline():
            if json.loads(line)["event"] == event:
                return
    raise AssertionError(f"it never said {event}")


@asynccontextmanager
async def served(database_url: str, **more: str) -> AsyncIterator[tuple[Process, int]]:
    port = free_port()
    process = await spawn(database_url, port, **more)
    try:
        await until_said(process, "api_started")
        yield process, port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: Process) -> tuple[int, str]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


@pytest.fixture
async def key(database_url: str, ledger_of_database: Ledger) -> str:
    await ledger_of_database.identity.create_tenant("acme")
    plain, _ = await ledger_of_database.identity.create_key("acme", "ann", frozenset({Role.SUBMIT}))
    return plain


@pytest.fixture
async def ledger_of_database(database_url: str) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(database_url, size=2, application_name="tests")
    yield ledger
    await ledger.close()


async def test_an_occupied_port_is_told_in_one_line(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        code, said = await ended(await spawn(database_url, port))

    assert code == 1
    assert said.splitlines() == [
        f"agentjobs api: cannot listen on 127.0.0.1:{port} (Address already in use); "
        "set AGENTJOBS_API_PORT to a free port"
    ]


async def test_a_database_without_tables_is_told_in_one_line(postgres: EmbeddedPostgres) -> None:
    code, said = await ended(await spawn(postgres.dsn("postgres"), free_port()))

    assert code == 1
    assert "python -m agentjobs.ledger" in said.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly(database_url: str, number: signal.Signals) -> None:
    async with served(database_url) as (process, _):
        process.send_signal(number)
        code, said = await ended(process)

    assert code == 0
    assert json.loads(said.splitlines()[-1])["event"] == "stopped"
    assert all(json.loads(line) for line in said.splitlines())


async def test_a_request_in_flight_is_answered_before_the_end(database_url: str, key: str) -> None:
    body = json.dumps(REQUEST).encode()
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    async with served(database_url) as (process, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + body[:5])
        await writer.drain()
        await answered(port)  # so the half request before it was taken up

        process.send_signal(signal.SIGTERM)
        await until_said(process, "Shutting down")
        writer.write(body[5:])
        answer = await reader.read()
        writer.close()
        code, _ = await ended(process)

    assert answer.startswith(b"HTTP/1.1 202 ")
    assert code == 0


async def test_under_load_a_signal_leaves_no_job_that_nobody_was_told_of(
    database_url: str, key: str, ledger_of_database: Ledger
) -> None:
    told: list[str] = []
    statuses: set[int] = set()

    async def submit_on(client: httpx.AsyncClient) -> None:
        with contextlib.suppress(httpx.TransportError):  # refused, or closed before it was read
            while True:
                answer = await client.post("/v1/jobs", json=REQUEST)
                statuses.add(answer.status_code)
                told.append(answer.json()["id"])

    async with served(database_url) as (process, port), contextlib.AsyncExitStack() as clients:
        headers = {"Authorization": f"Bearer {key}"}
        base_url = f"http://127.0.0.1:{port}"
        opened = [
            await clients.enter_async_context(httpx.AsyncClient(base_url=base_url, headers=headers))
            for _ in range(8)
        ]
        submitting = [asyncio.create_task(submit_on(client)) for client in opened]
        await eventually(lambda: _many(told), "some acceptances")
        process.send_signal(signal.SIGTERM)
        code, _ = await ended(process)
        await asyncio.wait_for(asyncio.gather(*submitting), PATIENCE_SECONDS)

    rows = await ledger_of_database.database.pool.fetch("SELECT id FROM jobs")
    assert code == 0
    assert statuses == {202}
    assert {row["id"] for row in rows} == set(told)


async def _many(told: list[str]) -> bool:
    return len(told) > 30


async def answered(port: int) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/readyz")).status_code == 200


async def test_a_body_of_50_mb_is_refused(database_url: str, key: str) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b" " * 1_000_000

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    announced = {"Content-Length": "50000000"}
    async with served(database_url) as (_, port), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answers = [
            await client.post("/v1/jobs", content=parts(), headers=headers | more) for more in (announced, {})
        ]
        await answered(port)

    assert [answer.status_code for answer in answers] == [413, 413]
