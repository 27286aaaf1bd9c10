"""A collector of spans on this machine: OTLP over HTTP, as protobuf."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.ports import free_port
from tests.tracing.told import Span, Tree, decoded, trees


@dataclass
class Collector:
    """Keeps what it is sent."""

    port: int
    messages: list[ExportTraceServiceRequest] = field(default_factory=list)
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process tell its spans here, at once."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}

    @property
    def spans(self) -> list[Span]:
        """So far."""
        return [span for message in self.messages for span in decoded(message)]

    def tree(self, trace_id: str) -> Tree:
        """The spans of this trace, so far."""
        return trees(self.spans).get(trace_id, Tree())

    @property
    def text(self) -> str:
        """All that was sent, whatever field it was in."""
        return "\n".join(str(message) for message in self.messages)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, as many requests as it is used for."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                self.messages.append(await _read(reader))
                writer.write(self.answer)
                await writer.drain()
        writer.close()


async def _read(reader: asyncio.StreamReader) -> ExportTraceServiceRequest:
    head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    assert head.startswith("POST /v1/traces ")
    return ExportTraceServiceRequest.FromString(
        gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    )


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector while the block runs."""
    collector = Collector(free_port())
    server = await asyncio.start_server(collector.serve, "127.0.0.1", collector.port)
    try:
        yield collector
    finally:
        server.close()
