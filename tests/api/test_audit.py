"""The audit log: for reviewers and admins of the tenant, complete, and never changed."""

from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from tests.api.front import Front, pointers

NOTE = {"note": "seen"}


async def test_it_holds_who_did_what_to_what_and_why(front: Front, rita: AsyncClient, adam: AsyncClient) -> None:
    first, second = await front.scene.dead(), await front.scene.dead()
    await rita.get(f"/v1/dead-letters/{first}")
    await rita.post(
        f"/v1/dead-letters/{first}/redrive", json={**NOTE, "again": True, "input": {"text": "other words"}}
    )
    await rita.post(f"/v1/dead-letters/{second}/discard", json=NOTE)
    await adam.put("/v1/budget", json={"tokens": 7, "usd": None})
    key_id = (await adam.post("/v1/keys", json={"user": "eve", "roles": ["submit"]})).json()["id"]
    grant = {"user": "eve", "action": "tickets:create"}
    await adam.post("/v1/grants", json=grant)
    await adam.delete("/v1/grants", params=grant)
    await adam.delete(f"/v1/keys/{key_id}")

    entries = (await adam.get("/v1/audit")).json()["items"]

    assert [(entry["actor"], entry["action"], entry["target"]) for entry in reversed(entries)] == [
        ("rita", "read_dead_letter", first),
        ("rita", "correct_input", first),
        ("rita", "redrive_again", first),
        ("rita", "discard", second),
        ("adam", "set_budget", "acme"),
        ("adam", "create_key", key_id),
        ("adam", "add_grant", "eve tickets:create"),
        ("adam", "revoke_grant", "eve tickets:create"),
        ("adam", "revoke_key", key_id),
    ]
    assert [entry["note"] for entry in entries if entry["action"] in {"discard", "redrive_again"}] == ["seen"] * 2
    made = next(entry for entry in entries if entry["action"] == "create_key")
    assert made["details"] == {"tenant": "acme", "user": "eve", "roles": ["submit"]}


@pytest.mark.parametrize(("name", "status"), [("ann", 403), ("rita", 200), ("adam", 200), ("gus", 200)])
async def test_reviewers_and_admins_may_read_it(front: Front, name: str, status: int) -> None:
    assert (await front.of(name).get("/v1/audit")).status_code == status


async def test_another_tenants_deeds_are_not_in_it(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    await rita.get(f"/v1/dead-letters/{job_id}")
    gus = front.of("gus")

    pages = [await gus.get("/v1/audit", params=query) for query in ({}, {"target": job_id}, {"actor": "rita"})]

    assert [page.json()["items"] for page in pages] == [[], [], []]


async def test_it_can_be_narrowed(front: Front, rita: AsyncClient, adam: AsyncClient) -> None:
    jobs = [await front.scene.dead() for _ in range(2)]
    for job_id in jobs:
        await rita.get(f"/v1/dead-letters/{job_id}")
    await rita.post(f"/v1/dead-letters/{jobs[0]}/discard", json=NOTE)
    await adam.post("/v1/grants", json={"user": "eve", "action": "tickets:create"})

    async def count(**query: str) -> int:
        return len((await rita.get("/v1/audit", params=query)).json()["items"])

    assert await count() == 4
    assert await count(actor="adam") == 1
    assert await count(action="read_dead_letter") == 2
    assert await count(target=jobs[0]) == 2
    assert await count(target=jobs[0], action="discard", actor="rita") == 1
    assert await count(target="eve tickets:create") == 1
    assert await count(actor="nobody") == 0


async def test_pages_go_latest_first_without_gap_or_repetition(front: Front, rita: AsyncClient) -> None:
    job_id = await front.scene.dead()
    for _ in range(5):
        await rita.get(f"/v1/dead-letters/{job_id}")

    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = (await rita.get("/v1/audit", params=query)).json()
        seen += [entry["id"] for entry in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert seen == sorted(set(seen), key=int, reverse=True)
    assert len(seen) == 5


async def test_a_cursor_of_another_list_is_refused(front: Front, rita: AsyncClient) -> None:
    for _ in range(2):
        await front.scene.dead()
    cursor = (await rita.get("/v1/dead-letters", params={"limit": 1})).json()["next_cursor"]

    assert pointers(await rita.get("/v1/audit", params={"cursor": cursor})) == ["query:cursor"]


@pytest.mark.parametrize("query", ["actor=%00", "action=a'b", "target=%00", "limit=0", "cursor=x"])
async def test_a_query_that_cannot_be_taken_is_refused(rita: AsyncClient, query: str) -> None:
    assert pointers(await rita.get(f"/v1/audit?{query}")) == [f"query:{query.split('=')[0]}"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit_log SET actor = 'nobody'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "TRUNCATE tenants, audit_log CASCADE",
    ],
)
async def test_nothing_of_it_is_changed_or_taken_back(front: Front, rita: AsyncClient, change: str) -> None:
    await rita.get(f"/v1/dead-letters/{await front.scene.dead()}")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await front.scene.execute(change)

    assert await front.scene.count("audit_log") == 1
