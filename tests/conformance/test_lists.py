"""Lists: newest first, page by page, each row once."""

from tests.conformance.deployment import Caller, problem


async def test_pages_hold_each_job_once_newest_first(caller: Caller) -> None:
    """AIP-158: an opaque token leads to the next page, and a last page has none."""
    mine = [await caller.accepted() for _ in range(3)]
    seen: list[dict[str, str]] = []
    query: dict[str, str | int] = {"limit": 2}

    while not set(mine) <= {job["id"] for job in seen}:
        page = (await caller.http.get("/v1/jobs", params=query)).json()
        assert page["items"], "the list ended without them"
        assert len(page["items"]) <= 2
        seen += page["items"]
        query["cursor"] = page["next_cursor"]

    assert len({job["id"] for job in seen}) == len(seen)
    assert [job["created_at"] for job in seen] == sorted((job["created_at"] for job in seen), reverse=True)
    assert [job["id"] for job in seen if job["id"] in mine] == mine[::-1]


async def test_a_filter_holds_for_every_row(caller: Caller) -> None:
    await caller.until(await caller.accepted())

    for state in ("succeeded", "dead", "cancelled"):
        page = (await caller.http.get("/v1/jobs", params={"state": state})).json()
        assert {job["state"] for job in page["items"]} <= {state}


async def test_a_cursor_that_was_changed_is_refused_or_leads_nowhere_else(caller: Caller, other: Caller) -> None:
    """OWASP API1:2023: a cursor is a place in a list, and no key to it."""
    mine = {await caller.accepted() for _ in range(2)}
    cursor = (await caller.http.get("/v1/jobs", params={"limit": 1})).json()["next_cursor"]

    foreign = await other.http.get("/v1/jobs", params={"cursor": cursor, "limit": 200})
    cut = await caller.http.get("/v1/jobs", params={"cursor": cursor[: len(cursor) // 2]})

    assert foreign.status_code == 200
    assert not mine & {job["id"] for job in foreign.json()["items"]}
    problem(cut, 422)
