"""A double of GitHub's issues, over real HTTP, with a log of what it executed: the judge of duplicates.

What it does as GitHub does, and where GitHub says so (docs.github.com, REST API, version 2022-11-28):

- "Issues", create: 201 with number, html_url, created_at; no idempotency key of any kind; labels are silently
  dropped without push access; 410 when issues are switched off; 422 with `errors` for a missing or too long title
  (256) or body (65,536 characters).
- "Issues", list: open and closed, newest first, 30 a page unless asked, at most 100; with what was just created.
- "Issues", update: 200 also when nothing changes; 410 for a deleted issue, 404 for an unknown one.
- "Search": `total_count`, `incomplete_results`, `items`; phrases, OR, `repo:`, `is:`, `in:`; 422 beyond 256
  characters of words or five operators; punctuation is ignored; the index may be behind (`index_is_paused`).
- "Getting started", user agent: a request without one is refused with 403.
- "API versions": an unknown X-GitHub-Api-Version is refused with 400.
- "Troubleshooting": 404, not 403, for a repository that the token may not see; 401 "Bad credentials".
- "Rate limits": 403 or 429, with Retry-After, or with x-ratelimit-remaining 0 and x-ratelimit-reset, or neither.

What a test can make it do besides: github_faults.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from agentjobs.stack.ports import LOOPBACK

TOKEN: Final = "github_pat_0123456789abcdef"
REPOSITORY: Final = "acme/support"
_ISSUES: Final = f"/repos/{REPOSITORY}/issues"
_QUALIFIER: Final = re.compile(r"\b(repo|is|in|label):(\S+)")
_PHRASE: Final = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Asked:
    """A request, as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Told:
    """An answer, before it is sent."""

    status: int
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def encoded(self) -> bytes:
        """As bytes of HTTP."""
        body = self.raw if self.raw is not None else json.dumps(self.document, ensure_ascii=False).encode()
        lines = {
            "Content-Type": "application/json; charset=utf-8",
            "Content-Length": str(len(body)),
            "Date": format_datetime(datetime.now(UTC), usegmt=True),
            **self.headers,
        }
        head = f"HTTP/1.1 {self.status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        return head.encode() + b"\r\n" + body


Fault: TypeAlias = "Callable[[GithubDouble, Asked], Awaitable[Told | None]]"
"""Answers one request in another way; None closes the connection without a word."""


class GithubDouble:
    """One repository."""

    def __init__(self) -> None:
        self.executed: list[tuple[str, int, str]] = []
        """What was done, append-only: ("created" or "closed", number, title)."""

        self.asked: list[Asked] = []
        self.may_push = True
        self.index_is_paused = False
        self.search_is_incomplete = False
        self.clock_ahead = timedelta(0)
        """How far the times of new issues lie ahead; negative makes them old."""

        self.base_url = ""
        self._issues: dict[int, dict[str, Any]] = {}
        self._indexed: dict[int, dict[str, Any]] = {}
        self._deleted: set[int] = set()
        self._faults: deque[Fault] = deque()
        self._background: set[asyncio.Task[Told]] = set()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[GithubDouble]:
        """Listening on a free port of the loopback interface."""
        double = cls()
        server = await asyncio.start_server(double._serve, LOOPBACK, 0)
        double.base_url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        try:
            yield double
        finally:
            server.close()
            for task in double._background:
                task.cancel()

    def will(self, *faults: Fault) -> None:
        """The next requests are answered in these ways, one each; later ones as usual."""
        self._faults.extend(faults)

    def issue(self, number: int) -> dict[str, Any]:
        """An issue as it stands."""
        return self._issues[number]

    def having(self, text: str) -> list[dict[str, Any]]:
        """The issues with this text in the body."""
        return [issue for issue in self._issues.values() if text in issue["body"]]

    def delete(self, number: int) -> None:
        """As an administrator can."""
        del self._issues[number]
        self._deleted.add(number)

    def catch_up(self) -> None:
        """The index sees everything again."""
        self.index_is_paused = False
        self._indexed = dict(self._issues)

    def respond(self, asked: Asked) -> Told:
        """What GitHub would do and say."""
        refusal = _refusal(asked)
        if refusal is not None:
            return refusal
        match asked.method, asked.path:
            case "POST", path if path == _ISSUES:
                return self._create(asked)
            case "GET", path if path == _ISSUES:
                return Told(200, self._listed(asked.query))
            case "GET", "/search/issues":
                return self._search(asked.query)
            case "PATCH", path if path.startswith(f"{_ISSUES}/"):
                return self._update(int(path.removeprefix(f"{_ISSUES}/")), json.loads(asked.body))
            case _:
                return message(404, "Not Found")

    def execute_in_background(self, asked: Asked, when: asyncio.Event) -> asyncio.Task[Told]:
        """Execute it once the event has happened."""

        async def execute() -> Told:
            await when.wait()
            return self.respond(asked)

        task = asyncio.create_task(execute())
        self._background.add(task)
        return task

    def _create(self, asked: Asked) -> Told:
        wanted = json.loads(asked.body)
        title, body = wanted.get("title") or "", wanted.get("body") or ""
        for name, value, limit in (("title", title, 256), ("body", body, 65_536)):
            if len(value) > limit or (name == "title" and not value.strip()):
                code = "too_long" if value else "missing_field"
                errors = [{"resource": "Issue", "field": name, "code": code}]
                return Told(422, {"message": "Validation Failed", "errors": errors})
        number = len(self._issues) + len(self._deleted) + 1
        issue = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "labels": [{"name": name} for name in wanted.get("labels", [])] if self.may_push else [],
            "html_url": f"{self.base_url}/{REPOSITORY}/issues/{number}",
            "created_at": f"{datetime.now(UTC) + self.clock_ahead:%Y-%m-%dT%H:%M:%SZ}",
        }
        self._issues[number] = issue
        self.executed.append(("created", number, title))
        if not self.index_is_paused:
            self._indexed[number] = issue
        return Told(201, issue)

    def _listed(self, query: dict[str, str]) -> list[dict[str, Any]]:
        assert query["state"] == "all" and query["sort"] == "created" and query["direction"] == "desc"
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        newest_first = sorted(self._issues.values(), key=lambda issue: issue["number"], reverse=True)
        return newest_first[(page - 1) * size : page * size]

    def _update(self, number: int, wanted: dict[str, Any]) -> Told:
        if number in self._deleted:
            return message(410, "This issue was deleted")
        if number not in self._issues:
            return message(404, "Not Found")
        self._issues[number] |= wanted
        self.executed.append(("closed", number, self._issues[number]["title"]))
        return Told(200, self._issues[number])

    def _search(self, query: dict[str, str]) -> Told:
        qualifiers = dict(_QUALIFIER.findall(_PHRASE.sub(" ", query["q"])))
        words = _QUALIFIER.sub(" ", query["q"])
        if len(words.strip()) > 256 or len(re.findall(r"\b(?:OR|AND|NOT)\b", words)) > 5:
            return message(422, "Validation Failed")
        if qualifiers.get("repo") != REPOSITORY or qualifiers.get("is") != "issue":
            return message(422, "Validation Failed")
        items = [issue for issue in self._indexed.values() if _matches(issue, words)]
        return Told(
            200, {"total_count": len(items), "incomplete_results": self.search_is_incomplete, "items": items}
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                fault = self._faults.popleft() if self._faults else None
                told = await fault(self, asked) if fault else self.respond(asked)
                if told is None:
                    break
                writer.write(told.encoded())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):  # the client went away: so does this connection
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    first = await reader.readline()
    if not first:
        return None
    method, target, _ = first.decode().split(" ")
    headers = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Asked(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)


def _refusal(asked: Asked) -> Told | None:
    if not asked.headers.get("user-agent"):
        return message(403, "Request forbidden by administrative rules.")
    if asked.headers.get("x-github-api-version") != "2022-11-28":
        return message(400, "The version is not supported")
    if asked.headers.get("authorization") != f"Bearer {TOKEN}":
        return message(401, "Bad credentials")
    return None


def message(status: int, message: str) -> Told:
    return Told(status, {"message": message, "documentation_url": "https://docs.github.com/rest"})


def _matches(issue: dict[str, Any], words: str) -> bool:
    """(a OR b) "c": of each group any phrase, of the phrases outside all."""
    text = _tokens(f"{issue['title']} {issue['body']}")
    groups = [_PHRASE.findall(group) for group in re.findall(r"\(([^)]*)\)", words)]
    alone = [[phrase] for phrase in _PHRASE.findall(re.sub(r"\([^)]*\)", " ", words))]
    return all(any(_tokens(phrase) in text for phrase in group) for group in groups + alone)


def _tokens(text: str) -> str:
    return " " + " ".join(re.findall(r"\w+", text.casefold())) + " "
