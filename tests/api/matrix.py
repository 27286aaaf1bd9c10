"""Every operation of the OpenAPI document, and for each path with an id a thing of acme's ann that has one.

A new operation takes part by itself. A new path with an id needs its row in THINGS, or the matrix fails.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from httpx import AsyncClient, Response

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api.app import create_app
from agentjobs.ledger.database import Database
from agentjobs.ledger.ledger import Ledger
from tests.api.front import UNKNOWN, Front

Ids = Mapping[str, str]
QUERY = {"user": "ann", "action": "tickets:create"}
"""Of required query parameters."""

STEP = "step-1.create_ticket"


async def job(front: Front) -> Ids:
    """A dead one: its stream has an end."""
    return {"id": await front.scene.dead(user="ann"), "step": STEP}


async def waiting_call(front: Front) -> Ids:
    """A job of which a call waits for a reviewer."""
    ids = await job(front)
    await front.scene.execute(
        "INSERT INTO approvals "
        "(effect_key, number, job_id, tenant, generation, step, tool, fingerprint, expires_at) "
        "VALUES ($1, 1, $2, 'acme', 0, $3, 'create_ticket', 'f', now() + interval '1 hour')",
        f"agent-job-{ids['id']}/{STEP}",
        ids["id"],
        STEP,
    )
    return ids


async def key(front: Front) -> Ids:
    """Ann's API key."""
    return {"id": next(key.id for key in await front.ledger.identity.keys("acme") if key.user == "ann")}


async def redrive(front: Front) -> Ids:
    """A bulk redrive."""
    await front.scene.dead()
    return await _made(front.of("rita"), "/v1/redrives", {"filter": {}, "note": "n"})


async def webhook(front: Front) -> Ids:
    """A webhook with a delivery."""
    wanted = {"url": "https://hooks.example.com/jobs", "types": ["job.dead"]}
    made = await _made(front.of("adam"), "/v1/webhooks", wanted)
    sent = await _made(front.of("adam"), f"/v1/webhooks/{made['id']}/test", None)
    return {"id": made["id"], "delivery": sent["id"]}


async def erasure(front: Front) -> Ids:
    """An order to erase."""
    return await _made(front.of("adam"), "/v1/erasures", {"user": "ann"})


async def _made(client: AsyncClient, path: str, body: object) -> Ids:
    answer = await client.post(path, json=body) if body is not None else await client.post(path)
    assert answer.is_success, answer.text
    return {"id": answer.json()["id"]}


# The longest beginning of a path counts.
THINGS: Mapping[str, Callable[[Front], Awaitable[Ids]]] = {
    "/v1/jobs/{id}": job,
    "/v1/jobs/{id}/approvals/{step}": waiting_call,
    "/v1/dead-letters/{id}": job,
    "/v1/keys/{id}": key,
    "/v1/redrives/{id}": redrive,
    "/v1/webhooks/{id}": webhook,
    "/v1/erasures/{id}": erasure,
}


@dataclass(frozen=True)
class Operation:
    """One operation, and what it asks for."""

    id: str
    method: str
    path: str
    roles: frozenset[str]
    """Any one of them will do; none: it asks for no key."""

    body: dict[str, Any] | None
    query: Mapping[str, str]

    @property
    def of_one_thing(self) -> bool:
        """Whether its path has an id."""
        return "{" in self.path

    async def thing(self, front: Front) -> Ids:
        """Something of ann's that it is about."""
        fitting = [beginning for beginning in THINGS if self.path.startswith(beginning)]
        assert fitting, f"{self.path} is new: give tests/api/matrix.py a thing of its kind"
        return await THINGS[max(fitting, key=len)](front)

    async def ask(self, client: AsyncClient, ids: Ids | None = None, **given: Any) -> Response:
        """With all that it needs."""
        known = {"id": UNKNOWN, "step": STEP, "delivery": UNKNOWN, **(ids or {})}
        body = {} if self.body is None else {"json": self.body}
        return await client.request(
            self.method, self.path.format(**known), params=self.query or None, **{**body, **given}
        )


def operations() -> list[Operation]:
    """All that the document has."""
    document = create_app(Ledger.over(Database(None)), built_in_agents()).openapi()  # type: ignore[arg-type]
    return [
        _operation(document, path, method, told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]


def _operation(document: dict[str, Any], path: str, method: str, told: dict[str, Any]) -> Operation:
    required = [one["name"] for one in told.get("parameters", []) if one["in"] == "query" and one["required"]]
    return Operation(
        id=told["operationId"],
        method=method.upper(),
        path=path,
        roles=frozenset(role for one in told.get("security", []) for roles in one.values() for role in roles),
        body=_example(document, told["requestBody"]) if "requestBody" in told else None,
        query={name: QUERY[name] for name in required},
    )


def _example(document: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    name = body["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
    example: dict[str, Any] = document["components"]["schemas"][name]["examples"][0]
    return example
