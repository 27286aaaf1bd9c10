"""People with a browser that knows no script: they sign in, follow links and send forms."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import httpx
from fastapi import FastAPI

from agentjobs.console.shell import POLICY
from agentjobs.ledger.ledger import Ledger
from tests.api.front import CALLERS
from tests.ledger.scene import Scene

ORIGIN = "http://console.test"
PAGE_LIMIT = 50_000
FORM_HEADERS = {"Origin": ORIGIN}


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        """The time."""
        return self.moment

    def move(self, by: timedelta) -> None:
        """Later."""
        self.moment += by


class Page(HTMLParser):
    """What a page is made of. Inline scripts, styles and handlers fail the test, and so does another host."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.status = response.status_code
        self.html = response.text
        self.tags: list[str] = []
        self.links: list[str] = []
        self.actions: list[str] = []
        self.fields: dict[str, str] = {}
        self._words: list[str] = []
        self.feed(response.text)

    @property
    def text(self) -> str:
        """All that can be read, on one line."""
        return " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element."""
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        assert not [name for name in given if name.startswith("on") or name == "style"], (tag, given)
        assert tag not in {"style", "iframe", "object", "base"}, tag
        assert tag != "script" or given["src"].startswith("/console/static/"), given
        if tag in {"script", "img", "link"}:
            assert given.get("src", given.get("href", "")).startswith("/console/static/"), given
        if tag == "a":
            self.links.append(given["href"])
        if tag == "form":
            self.actions.append(given["action"])
        if tag == "input" and given.get("type") == "hidden":
            self.fields[given["name"]] = given["value"]

    def handle_data(self, data: str) -> None:
        """Words."""
        self._words.append(data)


@dataclass
class Visitor:
    """One browser."""

    client: httpx.AsyncClient

    async def see(self, path: str, status: int = 200) -> Page:
        """A page under /console/."""
        response = await self.client.get(f"/console/{path}")
        assert response.status_code == status, (response.status_code, response.headers, response.text)
        return checked(response)

    async def send(self, path: str, token: str | None = None, **values: str) -> httpx.Response:
        """A form with this visitor's token, unless told otherwise."""
        if token is None:
            token = (await self.see("usage")).fields["form_token"]
        return await self.client.post(
            f"/console/{path}", data={"form_token": token, **values}, headers=FORM_HEADERS
        )


@dataclass
class Console:
    """The console, and who visits it."""

    app: FastAPI
    ledger: Ledger
    keys: dict[str, str] = field(default_factory=dict)
    key_ids: dict[str, str] = field(default_factory=dict)
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def scene(self) -> Scene:
        """The tenant `acme` in the ledger."""
        return Scene(self.ledger)

    async def populate(self) -> None:
        """Two tenants and their keys."""
        for name, (tenant, user, roles) in CALLERS.items():
            await self.ledger.identity.create_tenant(tenant)
            self.keys[name], record = await self.ledger.identity.create_key(tenant, user, roles)
            self.key_ids[name] = record.id

    async def close(self) -> None:
        """Close the browsers."""
        await self._open.aclose()

    def stranger(self, origin: str = ORIGIN) -> Visitor:
        """A browser that is not signed in."""
        client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=origin)
        self._open.push_async_callback(client.aclose)
        return Visitor(client)

    async def visitor(self, name: str) -> Visitor:
        """One of CALLERS, signed in."""
        visitor = self.stranger()
        answer = await sign_in(visitor, self.keys[name])
        assert answer.status_code == 303, answer.text
        return visitor


async def sign_in(visitor: Visitor, key: str, next: str = "", origin: str = ORIGIN) -> httpx.Response:
    """Send the form of the sign-in page."""
    return await visitor.client.post(
        "/console/sign-in", data={"key": key, "next": next}, headers={"Origin": origin}
    )


def checked(response: httpx.Response) -> Page:
    """The page, which is as every page has to be."""
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert len(response.content) < PAGE_LIMIT
    page = Page(response)
    assert page.tags.count("h1") == 1
    assert page.tags.count("main") == 1
    return page
