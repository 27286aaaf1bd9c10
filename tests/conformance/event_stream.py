"""A reader of event streams, line by line as the HTML standard has it (9.2.5 and 9.2.6)."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Event:
    """One event as a client is told of it."""

    type: str
    data: str
    id: str
    """The last id so far: an event without one keeps the id of the one before."""

    @property
    def value(self) -> dict[str, Any]:
        """Its data."""
        value: dict[str, Any] = json.loads(self.data)
        return value


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    """The events, until the server ends the stream. A block that is not ended by an empty line is none."""
    kind, data, last_id = "", list[str](), ""
    async for line in answer.aiter_lines():
        if not line:
            if data:
                yield Event(kind or "message", "\n".join(data), last_id)
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                kind = value
            case "data":
                data.append(value)
            case "id" if "\0" not in value:
                last_id = value
            case _:
                pass  # a comment, `retry`, or a field that came later
