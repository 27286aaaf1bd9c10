"""A bulk redrive on the whole stack, from the command line, while its parts are killed in the middle of it."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Running
from tests.world import eventually

pytestmark = pytest.mark.e2e

JOBS = 24
DEAD = "SELECT count(*) FROM dead_letters WHERE id = ANY ($1) AND state = 'open'"
ASKED = "SELECT asked FROM redrives WHERE id = $1"
WORDS = """SELECT job_id, count(*) FROM job_events
            WHERE job_id = ANY ($1) AND type = 'redrive_requested' GROUP BY job_id"""
TICKETS = "SELECT job_id, count(*) FROM tickets WHERE job_id = ANY ($1) GROUP BY job_id"


async def dead_jobs(shared: Running, user: str) -> list[str]:
    """Jobs that died since their user may not create tickets."""
    created = await shared.starter("keys", "create", "--tenant", "dev", "--user", user, "--json")
    headers = {"Authorization": f"Bearer {json.loads(created.out)['key']}"}
    async with httpx.AsyncClient(base_url=shared.stack.info.api, headers=headers, trust_env=False) as client:
        sent = [await client.post("/v1/jobs", json={"input": {"text": f"Request {n}"}}) for n in range(JOBS)]
    jobs = [answer.json()["id"] for answer in sent]

    async def dead() -> bool:
        return bool(await shared.ledger.database.pool.fetchval(DEAD, jobs) == JOBS)

    await eventually(dead, "all jobs to be dead", lambda: asyncio.sleep(0.2))
    return jobs


async def counted(shared: Running, statement: str, jobs: list[str]) -> dict[str, int]:
    """How many rows of each job."""
    return {row["job_id"]: row["count"] for row in await shared.ledger.database.pool.fetch(statement, jobs)}


async def shown(shared: Running, redrive_id: str) -> dict[str, Any]:
    """`redrives show`."""
    ended = await shared.starter("redrives", "show", redrive_id, "--json")
    assert ended.code == 0, ended.err
    document: dict[str, Any] = json.loads(ended.out)
    return document


async def start(shared: Running, jobs: list[str], *options: str) -> dict[str, Any]:
    """`redrives start` for just these jobs."""
    chosen = [word for job_id in jobs for word in ("--letter", job_id)]
    ended = await shared.starter("redrives", "start", *chosen, "--note", "granted", "--json", *options)
    assert ended.code == 0, ended.err
    document: dict[str, Any] = json.loads(ended.out)
    return document


async def until_over(shared: Running, redrive_id: str) -> dict[str, Any]:
    """Once it has ended."""

    async def look() -> dict[str, Any] | None:
        document = await shown(shared, redrive_id)
        return document if document["finished_at"] else None

    return await eventually(look, "the bulk redrive to end", lambda: asyncio.sleep(0.5))


@pytest.mark.parametrize(
    "victims",
    [
        ("worker-1", "worker-2"),
        *(
            pytest.param(victims, marks=pytest.mark.chaos)
            for victims in (("temporal",), ("postgres",), ("relay", "api"))
        ),
    ],
    ids=str,
)
async def test_none_is_redriven_twice_and_none_forgotten(shared: Running, victims: tuple[str, ...]) -> None:
    user = f"bulk-{victims[0]}"
    jobs = await dead_jobs(shared, user)
    tried = await start(shared, jobs, "--dry-run")
    stopped = await until_over(shared, (await start(shared, jobs))["id"])
    await shared.starter("grants", "add", "--user", user, "--action", "tickets:create")
    started = await start(shared, jobs, "--canary", "2", "--rate", "3")

    async def asked() -> int:
        # Not by the command, which may take longer than the whole on a busy machine.
        number: int = await shared.ledger.database.pool.fetchval(ASKED, started["id"])
        return number

    async def under_way() -> bool:
        return await asked() >= 6

    await eventually(under_way, "it to be under way", lambda: asyncio.sleep(0.1))
    for victim in victims:
        await shared.stack.kill(victim)
    between = await asked() if "postgres" not in victims else None
    for victim in victims:
        await shared.stack.until_ready(victim)
    completed = await until_over(shared, started["id"])

    assert tried["letters"] == JOBS
    assert (stopped["state"], stopped["stopped_because"], stopped["asked"]) == ("stopped", "canary_failed", 1)
    assert between is None or between < JOBS
    assert completed["state"] == "completed", completed
    assert completed["items"]["recovered"] == JOBS, completed
    words = await counted(shared, WORDS, jobs)
    assert sorted(words.values()) == [1] * (JOBS - 1) + [2]  # the canary of the first one, twice
    assert await counted(shared, TICKETS, jobs) == dict.fromkeys(jobs, 1)
