"""A double of Roundup's REST interface as far as our tracker uses it: one issue for a key, everything on record.

python -m tests.chaos.storm.ticket_judge --port 8002 --log FILE
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.chaos.storm.judge_log import JudgeLog, judge

ISSUES = "/tracker/rest/data/issue"


@dataclass
class TicketJudge:
    """The issues of one tracker."""

    log: JudgeLog
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    changes: int = 0

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and document."""
        parts = urlsplit(target)
        path, query = unquote(parts.path), dict(parse_qsl(parts.query))
        number = path.removeprefix(f"{ISSUES}/")
        match method:
            case "POST" if path == ISSUES:
                return self._create(json.loads(body))
            case "GET" if path == ISSUES:
                return self._found(query)
            case "GET" if number in self.issues:
                return self._shown(number)
            case "PATCH" if number in self.issues:
                return self._close(number, json.loads(body))
            case _:
                return 404, {"error": {"msg": "no such thing"}}

    def _create(self, wanted: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        key = wanted["external_key"]
        known = key in self.by_key
        number = str(len(self.issues) + 1)
        self.log.write("repeated" if known else "created", key=key, tenant=wanted["tenant"], title=wanted["title"])
        if known:
            return 409, {"error": {"msg": "the key is known"}}
        self.issues[number] = {**wanted, "id": number, "status": "unread", "etag": 1}
        self.by_key[key] = number
        return 201, {"data": {"id": number}}

    def _close(self, number: str, wanted: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        issue = self.issues[number]
        issue |= wanted
        issue["etag"] += 1
        self.log.write("closed", key=issue["external_key"], tenant=issue["tenant"], title=issue["title"])
        return 200, {"data": {"id": number}}

    def _shown(self, number: str) -> tuple[int, dict[str, Any]]:
        issue = self.issues[number]
        return 200, {"data": {"attributes": {"tenant": issue["tenant"]}, "@etag": f'"{number}-{issue["etag"]}"'}}

    def _found(self, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if "external_key:" in query:
            numbers = [self.by_key[key] for key in [query["external_key:"]] if key in self.by_key]
        else:
            numbers = self._searched(query)
        shown = ("id", "title", "tenant", "external_key")
        items = [{name: self.issues[number][name] for name in shown} for number in numbers]
        return 200, {"data": {"collection": items}}

    def _searched(self, query: dict[str, str]) -> list[str]:
        place = "title" if "title" in query else "body"
        word = query.get(place, "").casefold()
        found = []
        for number, issue in reversed(self.issues.items()):
            if issue["tenant"] == query.get("tenant:") and word in issue[place].casefold():
                found.append(number)
            if len(found) >= int(query.get("@page_size", "10")):
                break
        return found


async def serve(judge: TicketJudge, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, and its answer."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, target, _ = first.split(" ")
        status, document = judge.answer(method, target, body)
        answer = json.dumps(document).encode()
        told = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{told}Content-Length: {len(answer)}\r\n\r\n".encode() + answer)
        await writer.drain()
    writer.close()


if __name__ == "__main__":
    judge(__doc__, lambda log: partial(serve, TicketJudge(log)))
