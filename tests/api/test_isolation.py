"""One tenant sees nothing of another, whatever it asks for. (Each route by itself: test_matrix.py.)"""

import pytest

from tests.api.front import REQUEST, Front, check_problem


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
