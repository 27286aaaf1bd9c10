"""What the double can be told to do with a request; what it is not told, it does sensibly."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.providers.double_forms import chat_chunks, chat_document, response_document, response_events
from tests.providers.double_mind import Reply, sensible
from tests.providers.double_wire import Asked, Line

if TYPE_CHECKING:
    from tests.providers.openai_double import OpenAIDouble

Kind = Literal[
    "sensible", "reply", "status", "raw", "reset", "break", "cut", "slow", "hang", "error_event", "failed"
]


@dataclass(frozen=True)
class Fault:
    """One request's fate.

    - sensible, and slow (`seconds` before each piece); reply (with `reply`: see Reply)
    - status (an error answer of `status`, `headers`, `error`); raw (`body` as it stands)
    - hang (no byte, ever); reset (before any byte of an answer)
    - of a stream, after `pieces` pieces: break (a RST), cut (a polite end without a finish reason), error_event
    - failed (a background response that fails with `error`)

    `{prompt}` in an error's message is replaced by the request's own text: servers do quote it.
    """

    kind: Kind = "sensible"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    body: str = ""
    pieces: int = 1
    seconds: float = 0.0
    reply: dict[str, Any] = field(default_factory=dict)
    looks: int = 1
    """How many times a background response is asked for until it is done."""


async def carried_out(double: OpenAIDouble, asked: Asked, line: Line, fault: Fault | None) -> None:
    """Answer one request."""
    fault = fault or Fault()
    match fault.kind:
        case "hang":
            await asyncio.Event().wait()
        case "reset":
            line.reset()
        case "status":
            body = json.dumps({"error": _quoting(fault.error, asked)}).encode()
            await line.whole(fault.status, body, fault.headers)
        case "raw":
            await line.whole(fault.status, fault.body.encode(), fault.headers)
        case _:
            await _replied(double, asked, line, fault)


def _quoting(error: dict[str, Any], asked: Asked) -> dict[str, Any]:
    prompt = json.dumps(asked.body)
    return {name: value.replace("{prompt}", prompt) if isinstance(value, str) else value
            for name, value in error.items()}  # fmt: skip


async def _replied(double: OpenAIDouble, asked: Asked, line: Line, fault: Fault) -> None:
    if asked.method == "GET":
        await _looked_up(double, asked, line)
        return
    reply = Reply(**fault.reply) if fault.reply else sensible(asked.body)
    if asked.body.get("stream"):
        await _streamed(asked, line, fault, reply)
    elif asked.path == "/v1/responses":
        document = response_document(asked.body, reply, number=len(double.asked))
        if asked.body.get("background"):
            document = _stored(double, document, fault)
        await line.whole(200, json.dumps(document).encode())
    else:
        await line.whole(200, json.dumps(chat_document(asked.body, reply)).encode())


async def _streamed(asked: Asked, line: Line, fault: Fault, reply: Reply) -> None:
    await line.begin()
    is_chat = asked.path == "/v1/chat/completions"
    events = chat_chunks(asked.body, reply) if is_chat else response_events(asked.body, reply)
    stops = fault.kind in {"break", "cut", "error_event"}
    for number, (name, event) in enumerate(events):
        if stops and number > fault.pieces:
            break
        await asyncio.sleep(fault.seconds)
        await line.event(json.dumps(event), name)
    match fault.kind:
        case "break":
            await asyncio.sleep(0.05)  # a RST would overtake what was sent
            line.reset()
        case "error_event":
            await line.event(json.dumps({"error": _quoting(fault.error, asked)}))
            await line.end()
        case _:
            if is_chat and not stops:
                await line.event("[DONE]")
            await line.end()


def _stored(double: OpenAIDouble, document: dict[str, Any], fault: Fault) -> dict[str, Any]:
    if fault.kind == "failed":
        document = {**document, "status": "failed", "output": [], "usage": None, "error": fault.error}
    double.stored[document["id"]] = {"document": document, "looks": fault.looks}
    return {**document, "status": "queued", "output": [], "usage": None, "error": None}


async def _looked_up(double: OpenAIDouble, asked: Asked, line: Line) -> None:
    kept = double.stored.get(asked.path.rpartition("/")[2])
    if kept is None:
        error = {"message": "not found", "type": "invalid_request_error", "code": None, "param": None}
        await line.whole(404, json.dumps({"error": error}).encode())
        return
    kept["looks"] -= 1
    document = kept["document"]
    if kept["looks"] > 0:
        document = {**document, "status": "in_progress", "output": [], "usage": None, "error": None}
    await line.whole(200, json.dumps(document).encode())
