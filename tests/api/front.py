"""The API in this process, over a real ledger: callers of two tenants with their keys."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.api.shown import Links
from agentjobs.ledger.identity import Role
from agentjobs.ledger.ledger import Ledger
from tests.api.described import check_described
from tests.ledger.scene import Scene

UI = "http://temporal.test"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
REQUEST = {"input": {"text": "My printer is on fire"}}
JSON = {"Content-Type": "application/json"}

# The tenant, the user and the roles of each caller. `adam` comes first: his key may make tenants.
CALLERS: Mapping[str, tuple[str, str, frozenset[Role]]] = {
    "adam": ("acme", "adam", frozenset({Role.ADMIN})),
    "ann": ("acme", "ann", frozenset({Role.SUBMIT})),
    "ben": ("acme", "ben", frozenset({Role.SUBMIT})),
    "rita": ("acme", "rita", frozenset({Role.REVIEW})),
    "gus": ("globex", "gus", frozenset(Role)),
    "ann_of_globex": ("globex", "ann", frozenset({Role.SUBMIT})),
}


def new_app(ledger: Ledger) -> FastAPI:
    """The application, as the process makes it."""
    return create_app(ledger, built_in_agents(), links=Links(UI))


@dataclass
class Front:
    """The API, and who calls it. Whatever it answers must stand in its OpenAPI document."""

    app: FastAPI
    ledger: Ledger
    keys: dict[str, str] = field(default_factory=dict)
    _clients: int = 0
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def scene(self) -> Scene:
        """The tenant `acme` in the ledger."""
        return Scene(self.ledger)

    async def populate(self) -> None:
        """Two tenants and their keys."""
        for name, (tenant, user, roles) in CALLERS.items():
            await self.ledger.identity.create_tenant(tenant)
            self.keys[name], _ = await self.ledger.identity.create_key(tenant, user, roles)

    async def close(self) -> None:
        """Close the clients."""
        await self._open.aclose()

    def of(self, name: str | None) -> httpx.AsyncClient:
        """A client with this caller's key, or with none."""
        return self.with_key(self.keys[name] if name else None)

    def with_key(self, key: str | None) -> httpx.AsyncClient:
        """A client with this key."""
        # Each from an address of its own: wrong keys are counted by it.
        address = f"10.0.{self._clients // 256}.{self._clients % 256}"
        self._clients += 1
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, client=(address, 1)),
            base_url="http://api.test",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            event_hooks={"response": [self._check]},
        )
        self._open.push_async_callback(client.aclose)
        return client

    async def _check(self, response: httpx.Response) -> None:
        await response.aread()
        assert response.headers["x-request-id"]
        if response.request.method == "HEAD":
            return  # what it says, GET says
        if response.status_code >= 400:
            check_problem(response)
        check_described(self.app.openapi(), response)


def check_problem(response: httpx.Response) -> dict[str, Any]:
    """The answer is a problem of ours; it."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem: dict[str, Any] = response.json()
    assert problem["status"] == response.status_code
    assert problem["type"].startswith("urn:agentjobs:problem:")
    assert problem["title"]
    assert problem["detail"].endswith(".")
    return problem


def told(response: httpx.Response) -> tuple[int, dict[str, Any]]:
    """The problem's status, and its body without the request's own id: what strangers must not tell apart."""
    problem = check_problem(response)
    assert problem.pop("instance") == f"urn:uuid:{response.headers['x-request-id']}"
    return response.status_code, problem


def pointers(response: httpx.Response) -> list[str]:
    """Where the problem says that something is wrong."""
    assert response.status_code == 422, response.text
    return [error["pointer"] for error in response.json().get("errors", [])]
