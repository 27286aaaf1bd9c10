"""What a sensible model replies: a plan, one search, one ticket, an answer. From the request's own words only."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = "(open a ticket at once)"
"""Words of a request that does not want anything to be searched for."""


@dataclass
class Reply:
    """What a model writes, before it is put into the form of an endpoint."""

    text: str | None = None
    call: tuple[str, str] | None = None
    """Name and arguments (as JSON) of the tool that is called."""

    finish: str = "stop"
    refusal: str | None = None
    calls: int = 1
    """How often the call is repeated in the same reply."""

    usage: tuple[int, int] | None = (100, 20)
    pieces: list[str] = field(default_factory=list)

    def in_pieces(self) -> list[str]:
        """The text as it is streamed."""
        text = self.text or ""
        return self.pieces or [text[at : at + 20] for at in range(0, len(text), 20)]


def sensible(body: dict[str, Any]) -> Reply:
    """The reply of a model that does what it is asked."""
    data = _data(body)
    schema = _schema(body)
    if schema and "decision" in schema.get("properties", {}):
        tool, arguments = _next_call(data)
        return Reply(text=json.dumps({"decision": {"tool": tool, "arguments": arguments}}))
    if schema:
        return Reply(text=json.dumps(_plan(data, schema)))
    if body.get("tools"):
        tool, arguments = _next_call(data)
        return Reply(call=(tool, json.dumps(arguments)), finish="tool_calls")
    return Reply(text=f"Thank you. We have read your request: {_subject(data)} A colleague will look at it.")


def _data(body: dict[str, Any]) -> dict[str, Any]:
    messages = body.get("messages") or body.get("input") or []
    content = next(message["content"] for message in reversed(messages) if message.get("role") == "user")
    if isinstance(content, list):
        content = content[0]["text"]
    document: dict[str, Any] = json.loads(content)
    return document


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    form = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    schema: dict[str, Any] | None = form.get("json_schema", form).get("schema")
    return schema


def _subject(data: dict[str, Any]) -> str:
    first = str(data["request"]).strip().splitlines()[0][:100]
    return "".join(character for character in first if character.isprintable()) or "(untitled)"


def _plan(data: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    steps = schema["properties"]["steps"]["items"].get("enum", [])
    return {
        "language": "en",
        "category": "question",
        "urgency": "normal",
        "subject": _subject(data),
        "steps": [name for name in ("search_tickets", "create_ticket") if name in steps],
    }


def _next_call(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    done = {step["tool"] for step in data.get("done", [])}
    if "search_tickets" not in done and AT_ONCE not in data["request"]:
        return "search_tickets", {"query": _subject(data)}
    if "create_ticket" not in done:
        plan = {key: data["plan"][key] for key in ("category", "urgency", "language", "subject")}
        return "create_ticket", {**plan, "body": str(data["request"])[:1_000]}
    return "nothing_more", {}
