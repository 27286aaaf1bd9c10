"""A reply in the forms of OpenAI's two endpoints ("Create chat completion", "Create a model response")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.providers.double_mind import Reply

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
Event = tuple[str | None, dict[str, Any]]


def chat_document(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.call:
        message["tool_calls"] = _chat_calls(reply)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}],
        **_chat_usage(reply),
    }


def chat_chunks(body: dict[str, Any], reply: Reply) -> Iterator[Event]:
    """The chunks of a streamed chat completion: role, pieces, finish reason, usage."""
    yield None, _chunk(body, {"role": "assistant", "content": None})
    for piece in [] if reply.refusal else reply.in_pieces():
        yield None, _chunk(body, {"content": piece})
    if reply.refusal:
        yield None, _chunk(body, {"refusal": reply.refusal})
    yield None, _chunk(body, {}, reply.finish)
    if reply.usage:
        yield None, _chunk(body, None) | _chat_usage(reply)


def response_document(body: dict[str, Any], reply: Reply, *, number: int = 1) -> dict[str, Any]:
    """A response of the Responses API."""
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": body["model"],
        "status": "incomplete" if reply.finish in _INCOMPLETE else "completed",
        "background": bool(body.get("background")),
        "error": None,
        "incomplete_details": {"reason": _INCOMPLETE[reply.finish]} if reply.finish in _INCOMPLETE else None,
        "output": [_output(reply)],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": _response_usage(reply),
    }


def response_events(body: dict[str, Any], reply: Reply) -> Iterator[Event]:
    """The events of a streamed response."""
    document = response_document(body, reply)
    started = {**document, "status": "in_progress", "output": [], "usage": None}
    part = _refusal("") if reply.refusal else {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *([{"type": "response.refusal.delta", **place, "delta": reply.refusal}] if reply.refusal else []),
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in ([] if reply.refusal else reply.in_pieces())
        ),
        {"type": f"response.{document['status']}", "response": document},
    ]
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def _chat_calls(reply: Reply) -> list[dict[str, Any]]:
    name, arguments = reply.call or ("", "")
    return [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number in range(reply.calls)
    ]


def _chunk(body: dict[str, Any], delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": choices,
    }


def _chat_usage(reply: Reply) -> dict[str, Any]:
    if reply.usage is None:
        return {}
    sent, written = reply.usage
    return {"usage": {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}}


def _response_usage(reply: Reply) -> dict[str, Any] | None:
    if reply.usage is None:
        return None
    sent, written = reply.usage
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {"input_tokens": sent, "output_tokens": written, "total_tokens": sent + written, **details}


def _refusal(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


def _output(reply: Reply) -> dict[str, Any]:
    if reply.call:
        name, arguments = reply.call
        return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}
    if reply.refusal:
        content = _refusal(reply.refusal)
    else:
        content = {"type": "output_text", "text": reply.text or "".join(reply.pieces), "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {**message, "content": [content]}
