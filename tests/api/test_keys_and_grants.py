"""Keys and grants: an admin of the tenant gives and takes them back, and each change is on record."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from agentjobs.ledger.identity import Role
from tests.api.front import REQUEST, UNKNOWN, Front, pointers


async def audit(front: Front) -> list[tuple[str, str, str]]:
    rows = await front.scene.rows("SELECT actor, action, target FROM audit_log ORDER BY id")
    return [(row["actor"], row["action"], row["target"]) for row in rows]


async def test_a_new_key_works_at_once_and_is_shown_once(front: Front, adam: AsyncClient) -> None:
    made = await adam.post("/v1/keys", json={"user": "cleo", "roles": ["submit"]})

    key = made.json()
    listed = (await adam.get("/v1/keys")).json()["items"]
    assert made.status_code == 201
    assert made.headers["location"] == f"/v1/keys/{key['id']}"
    assert made.headers["cache-control"] == "no-store"
    assert (key["tenant"], key["user"], key["roles"], key["expires_at"]) == ("acme", "cleo", ["submit"], None)
    assert (await front.with_key(key["key"]).post("/v1/jobs", json=REQUEST)).status_code == 202
    assert key["id"] in {one["id"] for one in listed}
    assert all("key" not in one for one in listed)
    assert await audit(front) == [("adam", "create_key", key["id"])]


async def test_a_key_can_be_read_by_its_id(adam: AsyncClient) -> None:
    made = (await adam.post("/v1/keys", json={"user": "cleo", "roles": ["review", "submit"]})).json()

    read = (await adam.get(f"/v1/keys/{made['id']}")).json()

    assert read == {name: value for name, value in made.items() if name != "key"}


async def test_a_key_ends_when_it_should(front: Front, adam: AsyncClient) -> None:
    made = (
        await adam.post("/v1/keys", json={"user": "cleo", "roles": ["submit"], "expires_in_seconds": 3600})
    ).json()
    await front.scene.execute("UPDATE api_keys SET expires_at = now() WHERE id = $1", made["id"])

    refused = await front.with_key(made["key"]).get("/v1/jobs")

    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lasts == timedelta(hours=1)  # both by the clock of the database: that of an API may be wrong
    assert refused.status_code == 401


async def test_a_revoked_key_is_refused_from_then_on(front: Front, ann: AsyncClient, adam: AsyncClient) -> None:
    assert (await ann.get("/v1/jobs")).status_code == 200
    key_id = next(key["id"] for key in (await adam.get("/v1/keys")).json()["items"] if key["user"] == "ann")

    first = await adam.delete(f"/v1/keys/{key_id}")
    revoked_at = (await adam.get(f"/v1/keys/{key_id}")).json()["revoked_at"]
    second = await adam.delete(f"/v1/keys/{key_id}")

    assert (first.status_code, second.status_code) == (204, 204)
    assert (await ann.get("/v1/jobs")).status_code == 401
    assert (await adam.get(f"/v1/keys/{key_id}")).json()["revoked_at"] == revoked_at is not None


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"user": ""}, "/user"),
        ({"user": "a/b"}, "/user"),
        ({"user": "x" * 65}, "/user"),
        ({"roles": []}, "/roles"),
        ({"roles": "admin"}, "/roles"),
        ({"roles": ["root"]}, "/roles/0"),
        ({"roles": ["submit"] * 4}, "/roles"),
        ({"tenant": ""}, "/tenant"),
        ({"tenant": "../globex"}, "/tenant"),
        ({"expires_in_seconds": 0}, "/expires_in_seconds"),
        ({"expires_in_seconds": 2**52}, "/expires_in_seconds"),
        ({"id": UNKNOWN}, ""),
        ({"key": "ajk_mine"}, ""),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_key_that_cannot_be_made_is_refused(
    front: Front, adam: AsyncClient, changed: dict[str, Any], pointer: str
) -> None:
    before = await front.scene.count("api_keys")

    response = await adam.post("/v1/keys", json={"user": "cleo", "roles": ["submit"], **changed})

    assert pointers(response) == [pointer]
    assert await front.scene.count("api_keys") == before


async def test_the_first_admin_key_makes_tenants(front: Front, adam: AsyncClient) -> None:
    body = {"tenant": "initech", "user": "peter", "roles": ["admin", "submit"]}

    made = (await adam.post("/v1/keys", json=body)).json()

    newcomer = front.with_key(made["key"])
    assert made["tenant"] == "initech"
    assert [key["id"] for key in (await newcomer.get("/v1/keys")).json()["items"]] == [made["id"]]
    assert (await newcomer.post("/v1/jobs", json=REQUEST)).status_code == 202
    assert ("adam", "create_tenant", "initech") in await audit(front)


@pytest.mark.parametrize("tenant", ["acme", "initech"])
async def test_any_other_admin_key_makes_keys_for_its_own_tenant_only(front: Front, tenant: str) -> None:
    gus = front.of("gus")

    foreign = await gus.post("/v1/keys", json={"tenant": tenant, "user": "gus", "roles": ["admin"]})
    own = await gus.post("/v1/keys", json={"tenant": "globex", "user": "gus", "roles": ["admin"]})

    assert foreign.status_code == 403
    assert own.status_code == 201
    assert not await front.ledger.identity.tenant_exists("initech")


async def test_a_grant_is_given_listed_and_taken_back(front: Front, adam: AsyncClient) -> None:
    grant = {"user": "ann", "action": "tickets:create"}

    given = await adam.post("/v1/grants", json=grant)
    again = await adam.post("/v1/grants", json=grant)
    listed = (await adam.get("/v1/grants", params={"user": "ann"})).json()["items"]
    taken = await adam.delete("/v1/grants", params=grant)
    gone = await adam.delete("/v1/grants", params=grant)

    assert (given.status_code, again.status_code) == (201, 201)
    assert again.json() == given.json() == listed[0]
    assert (given.json()["tenant"], given.json()["granted_by"]) == ("acme", "adam")
    assert (taken.status_code, gone.status_code) == (204, 404)
    assert (await adam.get("/v1/grants")).json() == {"items": []}
    assert [action for _, action, _ in await audit(front)] == ["add_grant", "add_grant", "revoke_grant"]


async def test_grants_of_one_user_can_be_asked_for(adam: AsyncClient) -> None:
    for user in ("ann", "ben"):
        await adam.post("/v1/grants", json={"user": user, "action": "tickets:create"})

    everybody = (await adam.get("/v1/grants")).json()["items"]
    nobody = (await adam.get("/v1/grants", params={"user": "cleo"})).json()["items"]

    assert [grant["user"] for grant in everybody] == ["ann", "ben"]
    assert nobody == []


@pytest.mark.parametrize(
    "action", ["", "tickets", "tickets:", "Tickets:create", "tickets:create:x", "a:b\n", "*:*"]
)
async def test_a_grant_for_no_action_is_refused(adam: AsyncClient, action: str) -> None:
    grant = {"user": "ann", "action": action}

    assert pointers(await adam.post("/v1/grants", json=grant)) == ["/action"]
    assert pointers(await adam.delete("/v1/grants", params=grant)) == ["query:action"]


async def test_taking_back_needs_to_be_told_what(adam: AsyncClient) -> None:
    assert pointers(await adam.delete("/v1/grants")) == ["query:user", "query:action"]


async def test_every_role_can_be_given(front: Front, adam: AsyncClient) -> None:
    made = (await adam.post("/v1/keys", json={"user": "cleo", "roles": list(Role)})).json()

    cleo = front.with_key(made["key"])

    assert (await cleo.get("/v1/dead-letters")).status_code == (await cleo.get("/v1/keys")).status_code == 200
