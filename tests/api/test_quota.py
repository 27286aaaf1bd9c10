"""Quotas by HTTP: 429 with what to do and when, what remains, and who may change it."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.api import strict_route
from agentjobs.api.app import create_app
from agentjobs.domain.quotas import Limits
from agentjobs.domain.states import JobState
from tests.api.front import REQUEST, UNKNOWN, Front, pointers

# Structured fields (RFC 9651) as far as these headers go: a list of strings with integers as parameters.
_PARAMETER = r";[a-z*][a-z0-9_.*-]*=-?[0-9]{1,15}"
_ITEM = re.compile(rf'"([\x20\x21\x23-\x5b\x5d-\x7e]*)"((?:{_PARAMETER})*)')
ALL = {"in_flight": 5, "per_minute": None, "queue_length": 0, "running": 7}


@pytest.fixture
async def limited(front: Front) -> AsyncIterator[Front]:
    """The API of an installation whose users may have five jobs in flight."""
    app = create_app(front.ledger, built_in_agents(), quotas=Limits(in_flight=5, per_minute=300))
    opened = Front(app, front.ledger, keys=front.keys)
    yield opened
    await opened.close()


@pytest.fixture
def all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine is no reason for a 503: here it is about what is counted."""
    monkeypatch.setattr(strict_route, "ANSWER_SECONDS", 60)


@pytest.mark.usefixtures("all_the_time")
async def test_of_a_hundred_at_once_five_are_accepted_and_the_others_told_when(limited: Front) -> None:
    ann = limited.of("ann")
    await ann.get("/v1/quota")  # a key that nobody knows yet is one of few that an address may try at once

    answers = await asyncio.gather(*(ann.post("/v1/jobs", json=REQUEST) for _ in range(100)))

    assert sorted(answer.status_code for answer in answers) == [202] * 5 + [429] * 95
    assert await limited.scene.count("jobs") == 5
    assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 429} == {"5"}


@pytest.mark.usefixtures("all_the_time")
async def test_fifty_at_once_with_one_key_are_one_job_and_one_slot(limited: Front) -> None:
    ann, key = limited.of("ann"), {"Idempotency-Key": '"k1"'}

    answers = await asyncio.gather(*(ann.post("/v1/jobs", json=REQUEST, headers=key) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (await ann.get("/v1/quota")).json()["in_flight"] == {"limit": 5, "in_use": 1}


async def test_a_refusal_says_which_quota_it_was_and_what_to_do(limited: Front) -> None:
    ann = limited.of("ann")
    await _submit(ann, 5)

    refused = await ann.post("/v1/jobs", json=REQUEST)

    assert refused.json()["type"] == "urn:agentjobs:problem:quota_exceeded"
    assert "5 jobs that are not over, of at most 5" in refused.json()["detail"]
    assert _items(refused.headers["ratelimit-policy"]) == {"user": {"q": 5}}
    assert _items(refused.headers["ratelimit"]) == {"user": {"r": 0, "t": int(refused.headers["retry-after"])}}


async def test_too_many_within_a_minute_are_told_the_second_in_which_there_is_room(limited: Front) -> None:
    ann = limited.of("ann")
    await limited.scene.execute("UPDATE tenants SET quota_per_minute = 1")
    await _submit(ann, 1)
    await limited.scene.execute("UPDATE jobs SET created_at = created_at - interval '40 seconds'")

    refused = await ann.post("/v1/jobs", json=REQUEST)

    told = _items(refused.headers["ratelimit"])["minute"]
    assert _items(refused.headers["ratelimit-policy"]) == {"minute": {"q": 1, "w": 60}}
    assert told["t"] == int(refused.headers["retry-after"])
    assert 5 < told["t"] <= 20


async def test_a_full_queue_is_the_tenants(limited: Front) -> None:
    await limited.scene.execute("UPDATE tenants SET quota_queue_length = 1")
    await _submit(limited.of("ann"), 1)

    refused = await limited.of("ben").post("/v1/jobs", json=REQUEST)
    elsewhere = await limited.of("ann_of_globex").post("/v1/jobs", json=REQUEST)

    assert (refused.status_code, elsewhere.status_code) == (429, 202)
    assert _items(refused.headers["ratelimit-policy"]) == {"tenant": {"q": 1}}


async def test_what_remains_is_told_with_each_acceptance_also_a_repeated_one(limited: Front) -> None:
    ann = limited.of("ann")
    await _submit(ann, 1)

    first, again = [
        await ann.post("/v1/jobs", json=REQUEST, headers={"Idempotency-Key": '"k1"'}) for _ in range(2)
    ]

    assert _items(first.headers["ratelimit-policy"]) == {"minute": {"q": 300, "w": 60}, "user": {"q": 5}}
    assert _items(first.headers["ratelimit"]) == {"minute": {"r": 298}, "user": {"r": 3}}
    assert again.headers["ratelimit"] == first.headers["ratelimit"]
    assert again.json()["id"] == first.json()["id"]


async def test_a_repeated_request_is_answered_also_at_the_limit(limited: Front) -> None:
    ann, key = limited.of("ann"), {"Idempotency-Key": '"k1"'}
    first = await ann.post("/v1/jobs", json=REQUEST, headers=key)
    await _submit(ann, 4)

    again = await ann.post("/v1/jobs", json=REQUEST, headers=key)

    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])


async def test_a_cancelled_job_makes_room_at_once(limited: Front) -> None:
    ann = limited.of("ann")
    jobs = await _submit(ann, 5)
    refused = await ann.post("/v1/jobs", json=REQUEST)

    await ann.post(f"/v1/jobs/{jobs[0]}/cancel")

    assert (refused.status_code, (await ann.post("/v1/jobs", json=REQUEST)).status_code) == (429, 202)


async def test_without_limits_there_are_no_headers_of_them(ann: AsyncClient) -> None:
    accepted = await ann.post("/v1/jobs", json=REQUEST)

    assert accepted.status_code == 202
    assert [name for name in accepted.headers if name.startswith("ratelimit")] == []


async def test_anybody_sees_limits_and_what_is_in_use(limited: Front) -> None:
    await limited.scene.execute("UPDATE tenants SET quota_queue_length = 9, running_cap = 7")
    jobs = await _submit(limited.of("ann"), 3)
    await _submit(limited.of("ben"), 1)
    await limited.scene.execute("UPDATE jobs SET dispatched_at = now() WHERE id = $1", jobs[0])
    await limited.scene.move(jobs[1], JobState.DEAD)

    shown = (await limited.of("ann").get("/v1/quota")).json()

    assert shown == {
        "tenant": "acme",
        "user": "ann",
        "in_flight": {"limit": 5, "in_use": 2},
        "per_minute": {"limit": 300, "in_use": 3},
        "queue_length": {"limit": 9, "in_use": 2},
        "running": {"limit": 7, "in_use": 1},
        "own": {"in_flight": None, "per_minute": None, "queue_length": 9},
    }


async def test_the_first_key_sets_the_limits_of_any_tenant(limited: Front) -> None:
    adam = limited.of("adam")

    answer = await adam.put("/v1/quota", params={"tenant": "globex"}, json={**ALL, "in_flight": 1})

    assert answer.status_code == 200
    assert answer.json()["own"] == {"in_flight": 1, "per_minute": None, "queue_length": 0}
    assert [answer.json()[name]["limit"] for name in ("in_flight", "per_minute", "queue_length", "running")] == [
        *(1, 300, None, 7)
    ]
    assert await _statuses(limited.of("ann_of_globex"), 2) == [202, 429]
    assert await _statuses(limited.of("ann"), 2) == [202, 202]


async def test_a_change_is_on_record(limited: Front) -> None:
    adam = limited.of("adam")

    await adam.put("/v1/quota", params={"tenant": "globex"}, json=ALL)

    (entry,) = (await adam.get("/v1/audit")).json()["items"]
    assert (entry["actor"], entry["action"], entry["target"]) == ("adam", "set_quota", "globex")
    assert entry["details"] == ALL


@pytest.mark.parametrize("caller", ["gus", "rita", "ann"])
@pytest.mark.parametrize("params", [{}, {"tenant": "acme"}, {"tenant": "globex"}])
async def test_nobody_else_sets_a_limit_not_even_of_its_own_tenant(
    limited: Front, caller: str, params: dict[str, str]
) -> None:
    before = await limited.scene.rows("SELECT * FROM tenants ORDER BY id")

    refused = await limited.of(caller).put("/v1/quota", params=params, json=ALL)

    assert refused.status_code == 403
    assert await limited.scene.rows("SELECT * FROM tenants ORDER BY id") == before
    assert await limited.scene.count("audit_log") == 0


async def test_another_tenants_quota_is_seen_with_the_first_key_only(limited: Front) -> None:
    seen = await limited.of("adam").get("/v1/quota", params={"tenant": "globex"})
    refused = await limited.of("gus").get("/v1/quota", params={"tenant": "acme"})
    no_hint = await limited.of("gus").get("/v1/quota", params={"tenant": "nobody"})

    assert (seen.status_code, seen.json()["tenant"]) == (200, "globex")
    assert (refused.status_code, no_hint.status_code) == (403, 403)
    assert refused.json()["detail"] == no_hint.json()["detail"]


async def test_a_tenant_that_is_not_there_is_404(limited: Front) -> None:
    adam, nobody = limited.of("adam"), {"tenant": UNKNOWN}

    assert (await adam.get("/v1/quota", params=nobody)).status_code == 404
    assert (await adam.put("/v1/quota", params=nobody, json=ALL)).status_code == 404
    assert await limited.scene.count("audit_log") == 0


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"in_flight": -1}, "/in_flight"),
        ({"per_minute": 1_000_001}, "/per_minute"),
        ({"queue_length": "5"}, "/queue_length"),
        ({"in_flight": True}, "/in_flight"),
        ({"running": 0}, "/running"),
        ({"running": None}, "/running"),
    ],
)
async def test_a_limit_that_is_none_is_refused(limited: Front, changed: dict[str, object], pointer: str) -> None:
    refused = await limited.of("adam").put("/v1/quota", json={**ALL, **changed})

    assert pointers(refused) == [pointer]


async def test_every_limit_is_named(limited: Front) -> None:
    refused = await limited.of("adam").put("/v1/quota", json={"in_flight": 5})

    assert pointers(refused) == ["/per_minute", "/queue_length", "/running"]


async def _submit(client: AsyncClient, number: int) -> list[str]:
    answers = [await client.post("/v1/jobs", json=REQUEST) for _ in range(number)]
    assert [answer.status_code for answer in answers] == [202] * number
    return [answer.json()["id"] for answer in answers]


async def _statuses(client: AsyncClient, number: int) -> list[int]:
    return [(await client.post("/v1/jobs", json=REQUEST)).status_code for _ in range(number)]


def _items(header: str) -> dict[str, dict[str, int]]:
    """A header's items with their parameters. Fails where it is not written as the grammar has it."""
    items = {}
    for written in header.split(", "):
        item = _ITEM.fullmatch(written)
        assert item, header
        pairs = (pair.split("=") for pair in item[2].split(";")[1:])
        items[item[1]] = {name: int(value) for name, value in pairs}
    return items
