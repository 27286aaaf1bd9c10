"""The pages of admins: who gets in and may do what, who is told, what was erased; all tenants for the first."""

import pytest
from pydantic import SecretStr

from agentjobs.domain.webhooks import JOB_EVENTS, DisabledBecause, WebhookState
from agentjobs.ledger.identity import Caller, Role
from agentjobs.ledger.quotas import OwnLimits
from agentjobs.ledger.webhooks import WebhookRecord
from tests.api.front import UNKNOWN
from tests.console.scenery import Scenery
from tests.console.test_escaping import EVIL, harmless
from tests.console.visitors import Console, Visitor
from tests.webhooks.hooks import SECRET


@pytest.fixture
async def adam(console: Console) -> Visitor:
    return await console.visitor("adam")


async def hook(console: Console, tenant: str = "acme", description: str | None = None) -> WebhookRecord:
    """A webhook that is told of everything."""
    return await console.ledger.webhooks.add(
        tenant,
        url="https://hooks.example.com/jobs",
        types=JOB_EVENTS,
        description=description,
        secret=SecretStr(SECRET),
        actor="adam",
    )


async def test_empty_pages_have_a_sentence(adam: Visitor) -> None:
    told = {path: (await adam.see(f"admin{path}")).text for path in ("", "/webhooks", "/erasures")}

    assert "Nobody's jobs may do anything yet" in told[""]
    assert "Nobody is told when jobs end or die." in told["/webhooks"]
    assert "Nothing was to be erased yet." in told["/erasures"]


async def test_a_key_is_listed_without_its_secret_and_revoked(console: Console, adam: Visitor) -> None:
    ben = await console.visitor("ben")
    before = await adam.see("admin")

    answer = await adam.send(f"admin/keys/{console.key_ids['ben']}/revoke")

    after = await adam.see("admin?notice=key_revoked")
    signed_out = await ben.client.get("/console/jobs")
    revoke = f"/console/admin/keys/{console.key_ids['ben']}/revoke"
    assert answer.headers["location"] == "/console/admin?notice=key_revoked"
    assert revoke in before.actions
    assert revoke not in after.actions
    assert "Revoked for good." in after.text
    assert "ben submit \u2013 revoked now" in after.text
    assert signed_out.status_code == 303
    assert not [key for key in console.keys.values() if key in before.html]


async def test_a_key_of_another_tenant_is_not_there(console: Console, adam: Visitor) -> None:
    page = await adam.see("admin")

    answer = await adam.send(f"admin/keys/{console.key_ids['gus']}/revoke")

    assert answer.status_code == 404
    assert console.key_ids["gus"] not in page.html
    assert (await console.visitor("gus")) is not None


async def test_a_grant_is_given_and_taken_back(console: Console, adam: Visitor) -> None:
    added = await adam.send("admin/grants", user="ann", action="tickets:create")
    page = await adam.see("admin")
    given = await console.ledger.identity.grants("acme")

    revoked = await adam.send("admin/grants/revoke", user="ann", action="tickets:create")

    assert [answer.headers["location"].partition("=")[2] for answer in (added, revoked)] == [
        "grant_added",
        "grant_revoked",
    ]
    assert [(grant.user, grant.action, grant.granted_by) for grant in given] == [("ann", "tickets:create", "adam")]
    assert "ann tickets:create adam now" in page.text
    assert await console.ledger.identity.grants("acme") == []


async def test_a_grant_that_is_none_is_refused(console: Console, adam: Visitor) -> None:
    answers = [
        await adam.send("admin/grants", user="a b", action="tickets:create"),
        await adam.send("admin/grants", user="ann"),
        await adam.send("admin/grants/revoke", user="ann", action="tickets:create"),
    ]

    assert [answer.status_code for answer in answers] == [422, 422, 404]
    assert await console.ledger.identity.grants("acme") == []


async def test_a_webhook_is_tested_and_what_failed_is_sent_again(console: Console, adam: Visitor) -> None:
    webhook = await hook(console)
    await adam.send(f"admin/webhooks/{webhook.id}/test")
    (test,) = await console.ledger.webhook_deliveries.page(webhook.id, before=None, limit=5)
    await console.scene.execute(
        "UPDATE webhook_deliveries SET state = 'failed', next_attempt_at = NULL, attempts = 10, "
        "last_status = 503, last_error = 'refused'"
    )
    page = await adam.see(f"admin/webhooks/{webhook.id}")

    answer = await adam.send(f"admin/webhooks/{webhook.id}/deliveries/{test.id}/replay")

    (again,) = await console.ledger.webhook_deliveries.page(webhook.id, before=None, limit=5)
    assert "webhook.test \u2013 ✕ failed 10 503 refused" in page.text
    assert SECRET not in page.html
    assert (answer.status_code, again.id, again.state) == (303, test.id, WebhookState.WAITING)


async def test_a_disabled_webhook_says_why_and_is_enabled(console: Console, adam: Visitor) -> None:
    webhook = await hook(console)
    async with console.ledger.database.transaction() as connection:
        await console.ledger.webhooks.disable(webhook.id, DisabledBecause.GONE, connection)
    listed, page = await adam.see("admin/webhooks"), await adam.see(f"admin/webhooks/{webhook.id}")

    await adam.send(f"admin/webhooks/{webhook.id}/enable")

    enabled = await console.ledger.webhooks.read("acme", webhook.id)
    assert "✕ disabled gone" in listed.text
    assert f"/console/admin/webhooks/{webhook.id}/test" not in page.actions
    assert enabled is not None
    assert enabled.disabled_at is None


async def test_a_webhook_of_another_tenant_is_not_there(console: Console, adam: Visitor) -> None:
    theirs = await hook(console, tenant="globex")

    page = await adam.see(f"admin/webhooks/{theirs.id}", status=404)
    answer = await adam.send(f"admin/webhooks/{theirs.id}/test")

    assert page.text == (await adam.see(f"admin/webhooks/{UNKNOWN}", status=404)).text
    assert answer.status_code == 404


async def test_an_erasure_says_how_far_it_has_come_and_what_it_waits_for(console: Console, adam: Visitor) -> None:
    ended = (await console.scene.accept(user="ann")).id
    await console.scene.execute("UPDATE jobs SET state = 'cancelled', finalized_at = now() WHERE id = $1", ended)
    await console.scene.accept(user="ben")
    await console.ledger.erasures.of_job("acme", ended, actor="adam")
    await console.ledger.erasures.of_user("acme", "ben", actor="adam")
    await console.ledger.erasures.of_user("globex", "gus", actor="gus")

    page = await adam.see("admin/erasures")

    assert "all that ben had submitted 0 of 1 the end of 1 job" in page.text
    assert f"{ended[:8]} 1 of 1 Temporal to forget 1 workflow" in page.text
    assert "gus" not in page.text
    assert page.actions == ["/console/sign-out"]


async def test_further_erasures_are_behind_a_cursor(
    console: Console, adam: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentjobs.console.admin.PAGE_ROWS", 2)
    orders = [(await console.ledger.erasures.of_user("acme", f"user-{n}", actor="adam")).id for n in range(3)]

    first = await adam.see("admin/erasures")
    (older,) = [link for link in first.links if "cursor=" in link]
    second = await adam.see(older.removeprefix("/console/").replace("&amp;", "&"))

    assert [order for order in orders if order in first.html] == orders[1:]
    assert [order for order in orders if order in second.html] == orders[:1]


async def test_quotas_are_shown_to_anybody_of_the_tenant(console: Console) -> None:
    limits = OwnLimits(in_flight=5, per_minute=0, queue_length=None, running_cap=7)
    assert await console.ledger.quotas.set("acme", limits, by=await first_admin(console))
    await console.scene.accept(user="ann")

    page = await (await console.visitor("ann")).see("usage")

    assert "Your jobs that are not over 1 of 5" in page.text
    assert "Your submissions within a minute 1 No limit is set." in page.text
    assert "started and not over 0 of 7" in page.text


async def test_the_first_admin_key_sees_all_tenants_and_no_other_key_does(console: Console) -> None:
    await Scenery(console.scene).succeeded()
    await console.ledger.budgets.set("globex", tokens=1_000, usd=None, actor="gus")
    limits = OwnLimits(in_flight=5, per_minute=0, queue_length=9, running_cap=7)
    assert await console.ledger.quotas.set("globex", limits, by=await first_admin(console))
    _, second = await console.ledger.identity.create_key("acme", "ada", frozenset({Role.ADMIN}))

    pages = {name: await (await console.visitor(name)).see("usage") for name in ("adam", "rita", "gus")}

    told = pages["adam"].text
    assert "All tenants" in told
    assert "globex Tokens 0 of 1 000 Money $0.00 No limit is set. 0 of 7 0 of 9 5 no limit" in " ".join(
        told.split()
    )
    assert told.index("acme", told.index("All tenants")) < told.index("globex")
    assert "$0.001136" in told[told.index("All tenants") :]
    assert [name for name, page in pages.items() if "All tenants" in page.text] == ["adam"]
    assert not await console.ledger.identity.may_make_tenants(second.id)


async def first_admin(console: Console) -> Caller:
    """Whoever may set quotas."""
    caller = await console.ledger.identity.find_caller(console.keys["adam"])
    assert caller is not None
    return caller


async def test_what_admins_wrote_is_text(console: Console, adam: Visitor) -> None:
    webhook = await hook(console, description=EVIL)

    for path in ("admin/webhooks", f"admin/webhooks/{webhook.id}"):
        page = await adam.see(path)
        harmless(page)
        assert "<script>alert(1)</script>" in page.text
