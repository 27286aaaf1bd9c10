"""A link does to its connections what it is told to, and counts it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentjobs.stack.ports import LOOPBACK
from tests.chaos.rig import until
from tests.chaos.storm.links import Link

SOON = 5.0


class Echo:
    """Answers each line with itself, and knows what it was sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.heard.append(line)
            writer.write(line)
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, Link]]:
    """A server, and a link before it."""
    server = Echo()
    listening = await asyncio.start_server(server.serve, LOOPBACK, 0)
    async with Link.before(listening.sockets[0].getsockname()[1]) as link:
        yield server, link
    listening.close()


async def _asked(link: Link, line: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(LOOPBACK, link.port)
    writer.write(line)
    return reader, writer


async def _read(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readline(), SOON)


async def test_a_link_passes(echo: tuple[Echo, Link]) -> None:
    _, link = echo

    reader, writer = await _asked(link, b"one\n")

    assert await _read(reader) == b"one\n"
    assert link.open_count == 1
    writer.close()


async def test_what_is_held_arrives_after_the_partition(echo: tuple[Echo, Link]) -> None:
    server, link = echo
    reader, writer = await _asked(link, b"one\n")
    await _read(reader)
    link.hold()

    writer.write(b"two\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readline(), 0.1)
    link.heal()

    assert await _read(reader) == b"two\n"
    assert server.heard == [b"one\n", b"two\n"]
    assert link.fired["held"] == 1
    writer.close()


async def test_a_half_open_connection_stays_so_and_new_ones_pass(echo: tuple[Echo, Link]) -> None:
    server, link = echo
    reader, writer = await _asked(link, b"one\n")
    await _read(reader)
    link.swallow()
    link.heal()

    writer.write(b"two\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readline(), 0.1)
    again, other = await _asked(link, b"three\n")

    assert await _read(again) == b"three\n"
    assert server.heard == [b"one\n", b"three\n"]
    for end in (writer, other):
        end.close()
        await end.wait_closed()

    async def noticed() -> bool:
        return bool(link.noticed_seconds)

    await until(noticed, "the close", SOON)
    assert len(link.noticed_seconds) == 1


async def test_a_lost_reply_was_executed(echo: tuple[Echo, Link]) -> None:
    server, link = echo
    link.reply_loss = 1.0

    reader, _ = await _asked(link, b"one\n")

    with pytest.raises(ConnectionError):
        await _read(reader)
    assert server.heard == [b"one\n"]
    assert link.fired["reply lost"] == 1


async def test_only_the_reply_to_a_commit_is_cut(echo: tuple[Echo, Link]) -> None:
    server, link = echo
    link.commits_to_cut = 1

    reader, writer = await _asked(link, b"SELECT\n")
    assert await _read(reader) == b"SELECT\n"
    writer.write(b"COMMIT;\n")

    with pytest.raises(ConnectionError):
        await _read(reader)
    assert server.heard == [b"SELECT\n", b"COMMIT;\n"]
    assert link.fired["commit"] == 1


async def test_a_cut_comes_within_the_bytes_that_are_told(echo: tuple[Echo, Link]) -> None:
    _, link = echo
    reader, writer = await _asked(link, b"one\n")
    await _read(reader)
    link.cut_after(6)

    writer.write(b"two\n")
    assert await _read(reader) == b"two\n"
    writer.write(b"three\n")

    with pytest.raises(ConnectionError):
        await _read(reader)
    assert link.fired["cut"] == 1


async def test_where_nobody_listens_a_client_hears_so_at_once() -> None:
    silent = await asyncio.start_server(lambda _reader, _writer: None, LOOPBACK, 0)
    port = silent.sockets[0].getsockname()[1]
    silent.close()
    await silent.wait_closed()

    async with Link.before(port) as link:
        reader, _ = await asyncio.open_connection(LOOPBACK, link.port)

        assert await asyncio.wait_for(reader.read(), SOON) == b""
