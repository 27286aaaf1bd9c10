"""Clients that nobody wants: they hang up in the middle, or send what cannot be taken."""

import asyncio
import json
from contextlib import suppress
from random import Random
from urllib.parse import urlsplit

import httpx

from tests.chaos.client import PLAIN

POISONS = (
    b'{"input": {"text": "a\\u0000b"}}',
    b'{"input": {"text": "\\ud800"}}',
    b'{"input": {"text": "x", "text": "y"}}',
    b'{"input": {"text": NaN}}',
    b"[" * 100_000,
    b'{"input": {"text": ""}}',
    b'{"input": {"text": "x"}, "tenant": "bolt"}',
    b'\xff\xfe{"input"',
)
REQUEST_SECONDS = 5.0


async def hang_up(api: str, key: str, name: str, text: str, seconds: float) -> None:
    """Send a whole submission, and be gone before it is answered, or just after."""
    parts = urlsplit(api)
    body = json.dumps({"input": {"text": text}}).encode()
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {key}\r\n"
        f'Content-Type: application/json\r\nIdempotency-Key: "{name}"\r\nContent-Length: {len(body)}\r\n\r\n'
    )
    with suppress(OSError):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(head.encode() + body)
        await writer.drain()
        await asyncio.sleep(seconds)
        writer.transport.abort()


async def poison(random: Random, apis: tuple[str, ...], key: str, name: str) -> int | None:
    """The status, if there was one."""
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Idempotency-Key": f'"{name}"',
    }
    async with httpx.AsyncClient(timeout=REQUEST_SECONDS, trust_env=False, verify=PLAIN) as http:
        try:
            answer = await http.post(
                f"{random.choice(apis)}/v1/jobs", content=random.choice(POISONS), headers=headers
            )
        except httpx.TransportError:
            return None
    return answer.status_code
