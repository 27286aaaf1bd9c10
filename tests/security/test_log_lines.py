"""S22: whatever a stranger sends, a log has one line of JSON for each event, and labels of a fixed set."""

import asyncio
import json
from pathlib import Path

from tests.served import served_api

END = b"Host: x\r\nConnection: close\r\n"
HOSTILE = [
    b'GET /v1/jobs?x=\x1b[31m{"level":"error"} HTTP/1.1\r\n' + END + b"\r\n",
    b'GET /%0a{"event":"forged"}%1b[2J HTTP/1.1\r\n' + END + b"\r\n",
    b"GET /v1/jobs/forged%0d%0aX HTTP/1.1\r\nUser-Agent: \x1b]0;forged\x07\r\n" + END + b"\r\n",
    b"BREW /forged HTTP/1.1\r\n" + END + b"\r\n",
    b'{"event":"forged"}\r\n\r\n',
    b"POST /v1/jobs HTTP/1.1\r\nIdempotency-Key: forged\r\nContent-Length: 2\r\n" + END + b"\r\n{}",
]


async def test_each_event_is_one_line_of_json_without_what_was_sent(database_url: str, tmp_path: Path) -> None:
    log = tmp_path / "api.log"

    async with served_api(database_url, log) as url:
        for request in HOSTILE:
            await send(int(url.rsplit(":", 1)[1]), request)

    said = log.read_bytes()
    events = [json.loads(line) for line in said.splitlines()]
    routes = {event["route"] for event in events if event["event"] == "request"}
    assert b"forged" not in said
    assert b"\x1b" not in said
    assert routes <= {"/readyz", "/v1/jobs", "/v1/jobs/{id}", "unknown"}
    assert len([event for event in events if event["event"] == "request"]) >= len(HOSTILE) - 2


async def send(port: int, request: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await reader.read()
    writer.close()
