"""Webhooks by the API: made, looked at, tested, replayed and removed by an admin, each deed on record."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from agentjobs.domain.webhooks import WEBHOOKS_LIMIT, DisabledBecause
from agentjobs.webhooks.places import Reach
from tests.api.front import UNKNOWN, Front, pointers

URL = "https://hooks.example.org/agentjobs"
HERE = "/v1/webhooks"


async def made(client: AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post(HERE, json={"url": URL, **body})
    assert response.status_code == 201, response.text
    webhook: dict[str, Any] = response.json()
    return webhook


async def told(front: Front) -> list[tuple[str, str]]:
    rows = await front.scene.rows("SELECT actor, action FROM audit_log ORDER BY id")
    return [(row["actor"], row["action"]) for row in rows]


async def test_the_secret_is_shown_once(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam, types=["job.dead"], description="the desk")

    read = (await adam.get(f"{HERE}/{webhook['id']}")).json()
    listed = (await adam.get(HERE)).json()["items"]

    assert webhook["secret"].startswith("whsec_")
    assert read == listed[0] == {name: value for name, value in webhook.items() if name != "secret"}
    assert (read["url"], read["types"], read["description"], read["enabled"]) == (
        URL,
        ["job.dead"],
        "the desk",
        True,
    )
    assert await told(front) == [("adam", "add_webhook")]


async def test_without_types_it_is_told_of_every_end_and_death(adam: AsyncClient) -> None:
    assert (await made(adam))["types"] == ["job.succeeded", "job.dead", "job.cancelled", "job.discarded"]


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"url": "http://hooks.example.org/"}, "/url"),
        ({"url": "https://127.0.0.1/"}, "/url"),
        ({"url": "https://2130706433/"}, "/url"),
        ({"url": "https://0177.0.0.1/"}, "/url"),
        ({"url": "https://0x7f.1/"}, "/url"),
        ({"url": "https://[::ffff:169.254.169.254]/"}, "/url"),
        ({"url": "https://localhost./"}, "/url"),
        ({"url": "https://hooks.example.org:22/"}, "/url"),
        ({"url": "https://user:pass@hooks.example.org/"}, "/url"),
        ({"url": ""}, "/url"),
        ({"url": 7}, "/url"),
        ({"types": []}, "/types"),
        ({"types": ["job.running"]}, "/types/0"),
        ({"types": ["webhook.test"]}, "/types"),
        ({"types": ["job.dead", "job.dead"]}, "/types"),
        ({"description": " "}, "/description"),
        ({"secret": "whsec_mine"}, ""),
        ({"tenant": "globex"}, ""),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_a_webhook_that_cannot_be_is_refused(
    front: Front, adam: AsyncClient, changed: dict[str, Any], pointer: str
) -> None:
    response = await adam.post(HERE, json={"url": URL, **changed})

    assert pointers(response) == [pointer]
    assert "pass" not in response.text
    assert await front.scene.count("webhooks") == 0


async def test_a_trial_may_be_told_on_this_machine(front: Front, app: FastAPI, adam: AsyncClient) -> None:
    usual = app.state.webhooks_reach
    app.state.webhooks_reach = Reach.of_tenants(private=True)

    response = await adam.post(HERE, json={"url": "http://localhost:9000/hook"})
    app.state.webhooks_reach = usual

    assert response.status_code == 201


async def test_a_tenant_has_only_so_many(front: Front, adam: AsyncClient) -> None:
    for _ in range(WEBHOOKS_LIMIT):
        await made(adam)

    refused = await adam.post(HERE, json={"url": URL})
    other_tenant = await front.of("gus").post(HERE, json={"url": URL})

    assert (refused.status_code, refused.json()["type"]) == (409, "urn:agentjobs:problem:too_many_webhooks")
    assert other_tenant.status_code == 201
    assert await front.scene.count("webhooks") == WEBHOOKS_LIMIT + 1


async def test_also_of_many_made_at_once_only_so_many_are_taken(front: Front, adam: AsyncClient) -> None:
    answers = await asyncio.gather(*(adam.post(HERE, json={"url": URL}) for _ in range(WEBHOOKS_LIMIT + 5)))

    assert sorted(answer.status_code for answer in answers) == [201] * WEBHOOKS_LIMIT + [409] * 5
    assert await front.scene.count("webhooks") == WEBHOOKS_LIMIT


async def test_a_new_secret_is_shown_once_and_the_old_one_ends(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam)
    path = f"{HERE}/{webhook['id']}/rotate-secret"

    rotated = (await adam.post(path, json={"overlap_seconds": 60})).json()
    at_once = (await adam.post(path, json={"overlap_seconds": 0})).json()
    bad = [await adam.post(path, json={"overlap_seconds": seconds}) for seconds in (-1, 8 * 86_400, True, "60")]

    assert len({one["secret"] for one in (webhook, rotated, at_once)}) == 3
    assert rotated["old_secret_until"] is not None
    assert at_once["old_secret_until"] is None
    assert [pointers(response) for response in bad] == [["/overlap_seconds"]] * 4
    assert await told(front) == [("adam", "add_webhook"), *[("adam", "rotate_webhook_secret")] * 2]


async def test_a_test_is_one_at_a_time_and_a_delivery_like_any(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam)

    first = await adam.post(f"{HERE}/{webhook['id']}/test")
    second = await adam.post(f"{HERE}/{webhook['id']}/test")
    listed = (await adam.get(f"{HERE}/{webhook['id']}/deliveries")).json()["items"]

    assert first.status_code == 202
    assert (second.status_code, second.json()["type"]) == (409, "urn:agentjobs:problem:still_testing")
    assert [(one["id"], one["type"], one["state"]) for one in listed] == [
        (first.json()["id"], "webhook.test", "waiting")
    ]


async def test_deliveries_come_in_pages_newest_first(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam)
    jobs = [await front.scene.dead() for _ in range(5)]
    path = f"{HERE}/{webhook['id']}/deliveries"

    pages = [(await adam.get(path, params={"limit": 2})).json()]
    while pages[-1]["next_cursor"]:
        pages.append((await adam.get(path, params={"limit": 2, "cursor": pages[-1]["next_cursor"]})).json())

    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    assert [one["job_id"] for page in pages for one in page["items"]] == jobs[::-1]


async def test_a_delivery_is_replayed_by_its_webhooks_admin_only(front: Front, adam: AsyncClient) -> None:
    webhook, other = await made(adam), await made(adam)
    await front.scene.dead()
    delivery = (await adam.get(f"{HERE}/{webhook['id']}/deliveries")).json()["items"][0]["id"]
    await front.scene.execute(
        "UPDATE webhook_deliveries SET state = 'failed', attempts = 10, next_attempt_at = NULL"
    )
    path = f"{HERE}/{webhook['id']}/deliveries/{delivery}/replay"

    strange = [
        await front.of("gus").post(path),
        await adam.post(f"{HERE}/{other['id']}/deliveries/{delivery}/replay"),
        await adam.post(f"{HERE}/{webhook['id']}/deliveries/{UNKNOWN}/replay"),
        await adam.post(f"{HERE}/{webhook['id']}/deliveries/a%00b/replay"),
    ]
    replayed = await adam.post(path)

    assert [response.status_code for response in strange] == [404] * 4
    assert replayed.status_code == 202
    assert (replayed.json()["id"], replayed.json()["state"]) == (delivery, "waiting")
    assert await told(front) == [("adam", "add_webhook")] * 2 + [("adam", "replay_webhook_delivery")]


async def test_what_is_disabled_says_why_and_is_enabled_before_anything_else(
    front: Front, adam: AsyncClient
) -> None:
    webhook = await made(adam)
    here = f"{HERE}/{webhook['id']}"
    await front.scene.dead()
    delivery = (await adam.get(f"{here}/deliveries")).json()["items"][0]["id"]
    await front.ledger.webhooks.disable(webhook["id"], DisabledBecause.GONE)

    shown = (await adam.get(here)).json()
    refused = [await adam.post(f"{here}/test"), await adam.post(f"{here}/deliveries/{delivery}/replay")]
    enabled = (await adam.post(f"{here}/enable")).json()
    replayed = await adam.post(f"{here}/deliveries/{delivery}/replay")

    assert (shown["enabled"], shown["disabled_because"]) == (False, "gone")
    assert [response.json()["type"] for response in refused] == ["urn:agentjobs:problem:webhook_disabled"] * 2
    assert (enabled["enabled"], enabled["disabled_because"]) == (True, None)
    assert replayed.status_code == 202


async def test_another_tenants_webhook_is_as_unknown_as_any(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam)
    gus = front.of("gus")
    here = f"{HERE}/{webhook['id']}"

    answers = [
        await gus.get(here),
        await gus.get(f"{here}/deliveries"),
        await gus.post(f"{here}/test"),
        await gus.post(f"{here}/enable"),
        await gus.post(f"{here}/rotate-secret", json={}),
        await gus.delete(here),
    ]

    assert [answer.status_code for answer in answers] == [404] * 6
    assert (await gus.get(HERE)).json() == {"items": []}
    assert (await adam.get(here)).json()["old_secret_until"] is None
    assert await told(front) == [("adam", "add_webhook")]


async def test_removed_is_gone_with_its_deliveries(front: Front, adam: AsyncClient) -> None:
    webhook = await made(adam)
    await front.scene.dead()

    first = await adam.delete(f"{HERE}/{webhook['id']}")
    second = await adam.delete(f"{HERE}/{webhook['id']}")

    assert (first.status_code, second.status_code) == (204, 404)
    assert await front.scene.count("webhook_deliveries") == 0
    assert await told(front) == [("adam", "add_webhook"), ("adam", "remove_webhook")]


async def test_the_documents_examples_are_accepted(front: Front, adam: AsyncClient) -> None:
    schemas = front.app.openapi()["components"]["schemas"]

    (example,) = schemas["NewWebhook"]["examples"]
    webhook = await made(adam, **example)
    (rotation,) = schemas["SecretRotation"]["examples"]
    rotated = await adam.post(f"{HERE}/{webhook['id']}/rotate-secret", json=rotation)

    assert rotated.status_code == 200
