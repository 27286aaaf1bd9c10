"""The connection itself: what is no HTTP, heads without end, clients that wait, and answers in their order."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api import wire
from agentjobs.api.app import create_app
from agentjobs.ledger.database import Database
from agentjobs.ledger.ledger import Ledger

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENCE_SECONDS = 10.0


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """The API on a port, without a database: health, and all that is refused before one is asked."""
    app = create_app(Ledger.over(Database(None)), built_in_agents())  # type: ignore[arg-type]
    config = uvicorn.Config(app, http=wire.BoundedProtocol, ws="none", lifespan="off", log_config=None)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        await server.startup(sockets=[taken])
        try:
            yield taken.getsockname()[1]
        finally:
            await server.shutdown(sockets=[taken])


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with listening() as port:
        yield port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HEAD_SECONDS", 0.1)


async def said(port: int, *sent: bytes) -> bytes:
    """All that comes back until the server ends the connection."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in sent:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)  # so that each arrives by itself
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


async def answers(port: int, *sent: bytes) -> list[int]:
    return statuses(await said(port, *sent))


def statuses(heard: bytes) -> list[int]:
    return [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=lambda sent: ascii(sent)[:60],
)
async def test_what_is_no_http_is_a_problem_of_our_form(port: int, sent: bytes) -> None:
    heard = await said(port, sent)

    head, _, body = heard.partition(b"\r\n\r\n")
    problem = json.loads(body)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    assert f"x-request-id: {problem['instance'].removeprefix('urn:uuid:')}".encode() in head
    assert (problem["type"], problem["status"]) == ("urn:agentjobs:problem:malformed_http", 400)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET http://elsewhere.test/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        (b"GET //healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\nUpgrade: h2c\r\n\r\n", 200),
        (b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + b"X: x\r\n" * 10_000 + b"\r\n", 431),
    ],
    ids=lambda value: ascii(value)[:60],
)
async def test_what_is_http_is_answered_as_the_standard_says(port: int, sent: bytes, status: int) -> None:
    assert await answers(port, sent) == [status]


async def test_the_answer_to_head_has_no_body(port: int) -> None:
    heard = await said(port, b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    assert heard.endswith(b"\r\n\r\n")
    assert b"content-length: 15\r\n" in heard


@pytest.mark.parametrize(
    ("start", "piece", "status"),
    [(b"GET /", b"x" * 8_192, 414), (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X: " + b"x" * 8_000 + b"\r\n", 431)],
    ids=["target", "headers"],
)
async def test_a_head_without_end_is_cut_off(port: int, start: bytes, piece: bytes, status: int) -> None:
    assert await answers(port, start, *[piece] * 9) == [status]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"", []), (b"G", [408]), (b"GET / HTTP/1.1\r\nHost:", [408]), (b"\r\n", []), (HEALTH + b"G", [200, 408])],
    ids=ascii,
)
async def test_a_head_that_does_not_come_is_not_waited_for(port: int, sent: bytes, status: list[int]) -> None:
    assert await answers(port, sent) == status


@pytest.mark.usefixtures("impatient")
async def test_who_sends_on_after_the_answer_is_left(port: int) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")

    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ConnectionError):
            while True:
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0.005)

    writer.close()


async def test_requests_in_one_go_are_answered_in_their_order(port: int) -> None:
    last = b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    assert await answers(port, HEALTH * 3 + last) == [200, 200, 200, 404]


async def test_garbage_after_a_request_does_not_get_into_its_answer(port: int) -> None:
    heard = await said(port, HEALTH + b"\x00\x00\x00")

    assert statuses(heard)[0] == 200
    assert b'{"status":"ok"}' in heard


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"Content-Length: 10\r\n", 401), (b"Content-Length: 50000000\r\n", 413)],
    ids=["no key", "too much"],
)
async def test_a_body_that_is_not_wanted_is_not_asked_for(port: int, head: bytes, status: int) -> None:
    start = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"

    assert await answers(port, start + head + b"\r\n") == [status]
