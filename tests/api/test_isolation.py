"""Who may do what, over every route there is: no key, a missing role, another tenant."""

from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute
from httpx import AsyncClient, Response

from agentjobs.api import audit, budget, dead_letters, events, grants, jobs, keys, redrives, waiting
from agentjobs.ledger.identity import Role
from tests.api.front import REQUEST, UNKNOWN, Front, check_problem

BODIES: dict[str, dict[str, Any]] = {
    "submitJob": REQUEST,
    "redriveDeadLetter": {"note": "x"},
    "discardDeadLetter": {"note": "x"},
    "startRedrive": {"filter": {}, "note": "x"},
    "approveRedrive": {"note": "x"},
    "createKey": {"user": "x", "roles": ["submit"]},
    "addGrant": {"user": "x", "action": "tickets:create"},
    "setBudget": {"tokens": 7, "usd": None},
}
FOR_ANY_ROLE = {"listJobs", "readJob", "listAttempts", "streamEvents", "listWaiting", "readBudget"}
FOR_TWO_ROLES = {"listAudit"}
"""Either will do: tests/api/test_audit.py says who may."""

HOLDERS = {Role.SUBMIT: "ann", Role.REVIEW: "rita", Role.ADMIN: "adam"}
MALFORMED = [
    *("..", "%2e%2e%2fx", "a%2fb", "%00", "a%0a", "%0d%0aX:1", "x" * 65, "x" * 1_001, "%c3%a4", "%ff", "a'b"),
    *(UNKNOWN + "%00", UNKNOWN + "%20", "*", "%25"),
]


@dataclass(frozen=True)
class Operation:
    """One route."""

    id: str
    method: str
    path: str

    @property
    def needed(self) -> Role | None:
        """The role that it asks for."""
        if self.id in FOR_ANY_ROLE | FOR_TWO_ROLES:
            return None
        if self.path.startswith("/v1/jobs"):
            return Role.SUBMIT
        return Role.REVIEW if self.path.startswith(("/v1/dead-letters", "/v1/redrives")) else Role.ADMIN

    async def ask(self, client: AsyncClient, thing_id: str = UNKNOWN, **given: Any) -> Response:
        """With all that it needs."""
        query = {"user": "x", "action": "tickets:create"} if self.id == "revokeGrant" else None
        path = self.path.replace("{id}", thing_id)
        body = {"json": BODIES[self.id]} if self.id in BODIES else {}
        return await client.request(self.method, path, params=query, **{**body, **given})


OPERATIONS = [
    Operation(route.operation_id or "", method, route.path)
    for part in (jobs, events, waiting, dead_letters, redrives, budget, keys, grants, audit)
    for route in part.router.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
]
OF_ONE_THING = [operation for operation in OPERATIONS if "{id}" in operation.path]


def each(operations: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", operations, ids=lambda operation: operation.id)


def test_the_matrix_holds_every_route(front: Front) -> None:
    paths = front.app.openapi()["paths"]

    documented = {operation["operationId"] for methods in paths.values() for operation in methods.values()}
    assert {operation.id for operation in OPERATIONS} == documented - {"health", "ready"}


@each(OPERATIONS)
@pytest.mark.parametrize("key", [None, "ajk_wrong", "wrong", "ajk_" + "x" * 10_000], ids=lambda key: str(key)[:9])
async def test_without_a_key_nothing_is_answered(front: Front, operation: Operation, key: str | None) -> None:
    response = await operation.ask(front.with_key(key))

    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")


@each([operation for operation in OPERATIONS if operation.needed])
async def test_the_missing_role_is_named(front: Front, operation: Operation) -> None:
    strangers = [name for role, name in HOLDERS.items() if role is not operation.needed]

    answers = [await operation.ask(front.of(name)) for name in strangers]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert all(f"role {operation.needed}" in answer.json()["detail"] for answer in answers)


@each([operation for operation in OPERATIONS if operation.needed and operation.id in BODIES])
async def test_the_role_is_asked_for_before_the_body_is_read(front: Front, operation: Operation) -> None:
    stranger = next(name for role, name in HOLDERS.items() if role is not operation.needed)

    response = await operation.ask(front.of(stranger), json={"nonsense": 1})

    assert response.status_code == 403


@each([operation for operation in OPERATIONS if operation.id in FOR_ANY_ROLE])
async def test_any_role_may_read_jobs(front: Front, operation: Operation) -> None:
    answers = [await operation.ask(front.of(name)) for name in HOLDERS.values()]

    assert {answer.status_code for answer in answers} <= {200, 404}


@each(OF_ONE_THING)
async def test_another_tenants_thing_is_as_unknown_as_any(front: Front, operation: Operation) -> None:
    dead = await front.scene.dead()
    running = await front.scene.running()
    key_id = (await front.ledger.identity.keys("acme"))[0].id
    gus = front.of("gus")

    unknown = await operation.ask(gus, UNKNOWN)
    foreign = [await operation.ask(gus, thing_id) for thing_id in (dead, running, key_id, dead.upper())]

    assert unknown.status_code == 404
    for answer in foreign:
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert (await front.scene.letter(dead)).state == "open"
    assert (await front.scene.job(running)).cancel_requested_at is None
    assert await front.scene.count("audit_log") == 0


@each(OF_ONE_THING)
@pytest.mark.parametrize("malformed", MALFORMED, ids=lambda value: value[:12])
async def test_a_malformed_id_is_as_unknown_as_any(front: Front, operation: Operation, malformed: str) -> None:
    gus = front.of("gus")

    unknown = await operation.ask(gus, UNKNOWN)
    answer = await operation.ask(gus, malformed)

    assert (answer.status_code, answer.content) == (404, unknown.content)


async def test_lists_hold_only_the_tenants_own(front: Front) -> None:
    await front.scene.dead()
    await front.ledger.identity.add_grant("acme", "ann", "tickets:create", granted_by="adam")
    gus = front.of("gus")

    lists = [await gus.get(path) for path in ("/v1/jobs", "/v1/dead-letters", "/v1/grants")]
    keys_seen = (await gus.get("/v1/keys")).json()["items"]
    report = (await gus.get("/v1/dead-letters/report")).json()

    assert [one.json()["items"] for one in lists] == [[], [], []]
    assert {key["tenant"] for key in keys_seen} == {"globex"}
    assert report["open_count"] == 0


async def test_a_cursor_of_another_tenant_opens_nothing(front: Front) -> None:
    for _ in range(3):
        await front.scene.accept()
    cursor = (await front.of("rita").get("/v1/jobs", params={"limit": 1})).json()["next_cursor"]

    page = await front.of("gus").get("/v1/jobs", params={"cursor": cursor})

    assert page.json()["items"] == []


async def test_the_same_grant_of_two_tenants_is_two(front: Front) -> None:
    grant = {"user": "ann", "action": "tickets:create"}
    for admin in ("adam", "gus"):
        await front.of(admin).post("/v1/grants", json=grant)

    await front.of("gus").delete("/v1/grants", params=grant)

    assert len((await front.of("adam").get("/v1/grants")).json()["items"]) == 1


@pytest.mark.parametrize("name", ["X-Tenant-Id", "x-tenant-id", "X_Tenant_Id"])
async def test_a_header_cannot_name_another_tenant(front: Front, name: str) -> None:
    ann = front.of("ann")

    answers = [
        await ann.get("/v1/jobs", headers=[(name, "globex")]),
        await ann.get("/v1/jobs", headers=[(name, "acme"), (name, "globex")]),
        await ann.get("/v1/jobs", headers=[(name, "acme")]),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 200]
    assert "globex" not in str(check_problem(answers[0]))


async def test_forwarding_headers_change_nothing(front: Front) -> None:
    headers = {"X-Forwarded-User": "gus", "Forwarded": "for=globex", "X-Forwarded-Prefix": "/x", "X-User": "ben"}

    job = (await front.of("ann").post("/v1/jobs", json=REQUEST, headers=headers)).json()

    assert (await front.scene.rows('SELECT tenant, "user" FROM jobs')) == [{"tenant": "acme", "user": "ann"}]
    assert job["links"]["self"].startswith("/v1/")
