"""How a job asks the model (model_process.py). Nothing but the standard library: every system uses it."""

from __future__ import annotations

import asyncio
import json
import os
from http.client import HTTPConnection
from urllib.parse import urlsplit

HOST = "127.0.0.1"


def request_text(job_id: str, steps: int, seconds: float) -> str:
    """What a job is about; the model reads from it how long to think."""
    return f"bench {job_id} {steps} {seconds:g}"


def body_of(job_id: str, step: int, seconds: float) -> bytes:
    data = {"request": request_text(job_id, 2, seconds), "call": step}
    return json.dumps({"model": "double", "messages": [{"role": "user", "content": json.dumps(data)}]}).encode()


def called_and_waited(job_id: str, step: int, seconds: float) -> None:
    """One model call, where jobs are threads or processes. Raises RuntimeError without an answer."""
    connection = HTTPConnection(urlsplit(os.environ["BENCH_MODEL_URL"]).netloc)
    try:
        connection.request("POST", "/v1/chat/completions", body_of(job_id, step, seconds))
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the model answered {answer.status}")
    finally:
        connection.close()


async def called(job_id: str, step: int, seconds: float) -> None:
    """The same, where jobs share a loop."""
    reader, writer = await asyncio.open_connection(HOST, urlsplit(os.environ["BENCH_MODEL_URL"]).port)
    try:
        body = body_of(job_id, step, seconds)
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        if not (await reader.read()).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("the model gave no answer")
    finally:
        writer.close()
