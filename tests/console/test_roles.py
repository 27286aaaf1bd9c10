"""Who sees what: roles, users and tenants, as in the API."""

import pytest

from tests.api.front import UNKNOWN
from tests.console.scenery import Scenery
from tests.console.visitors import Console

ADMIN = ("admin", "admin/webhooks", f"admin/webhooks/{UNKNOWN}", "admin/erasures")
DESK = ("dead", "dead/report", f"dead/{UNKNOWN}", "redrives", f"redrives/{UNKNOWN}")


@pytest.mark.parametrize("name", ["ann", "adam"])
@pytest.mark.parametrize("path", DESK)
async def test_the_desk_is_for_reviewers(console: Console, name: str, path: str) -> None:
    visitor = await console.visitor(name)

    page = await visitor.see(path, status=403)

    assert "role review" in page.text


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("ann", {"/console/jobs", "/console/usage"}),
        ("rita", {"/console/jobs", "/console/usage", "/console/dead", "/console/redrives", "/console/audit"}),
        ("adam", {"/console/jobs", "/console/usage", "/console/audit", "/console/admin"}),
    ],
)
async def test_there_is_no_way_to_what_one_may_not_see(console: Console, name: str, links: set[str]) -> None:
    await console.scene.dead()
    visitor = await console.visitor(name)

    page = await visitor.see("")

    pages = {link for link in page.links if "?" not in link and link.count("/") == 2}
    assert pages - {"/console/"} == links


@pytest.mark.parametrize("name", ["ann", "rita"])
@pytest.mark.parametrize("path", ADMIN)
async def test_the_pages_of_admins_are_for_admins(console: Console, name: str, path: str) -> None:
    page = await (await console.visitor(name)).see(path, status=403)

    assert "role admin" in page.text


async def test_the_deeds_of_admins_need_their_role(console: Console) -> None:
    rita = await console.visitor("rita")

    answers = [
        await rita.send(f"admin/keys/{console.key_ids['ann']}/revoke"),
        await rita.send("admin/grants", user="rita", action="tickets:create"),
        await rita.send("admin/grants/revoke", user="ann", action="tickets:create"),
        *[await rita.send(f"admin/webhooks/{UNKNOWN}/{word}") for word in ("enable", "test")],
        await rita.send(f"admin/webhooks/{UNKNOWN}/deliveries/{UNKNOWN}/replay"),
    ]

    ann = await console.ledger.identity.key("acme", console.key_ids["ann"])
    assert [answer.status_code for answer in answers] == [403] * 6
    assert ann is not None
    assert ann.revoked_at is None
    assert await console.ledger.identity.grants("acme") == []


async def test_the_audit_is_not_for_who_only_submits(console: Console) -> None:
    await (await console.visitor("ann")).see("audit", status=403)
    await (await console.visitor("adam")).see("audit")


async def test_a_word_needs_its_role(console: Console) -> None:
    job_id = (await console.scene.accept()).id
    letter = await console.scene.dead()
    ann, rita = await console.visitor("ann"), await console.visitor("rita")

    answers = [
        await rita.send(f"jobs/{job_id}/cancel"),
        await ann.send(f"dead/{letter}/redrive", note="x"),
        await ann.send(f"dead/{letter}/discard", note="x"),
        await ann.send("redrives/try", canary="1"),
        await ann.send("redrives", note="x"),
        *[
            await ann.send(f"redrives/{UNKNOWN}/{word}", note="x")
            for word in ("pause", "resume", "cancel", "approve")
        ],
        await ann.send(f"jobs/{job_id}/approvals/step-1.x", decision="approve", note="x"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 10
    assert (await console.scene.job(job_id)).cancel_requested_at is None
    assert (await console.scene.letter(letter)).state == "open"


async def test_who_submits_sees_only_its_own_jobs(console: Console) -> None:
    own = (await console.scene.accept(user="ann")).id
    others = (await console.scene.accept(user="ben")).id
    ann = await console.visitor("ann")

    listed, overview = await ann.see("jobs"), await ann.see("")

    assert own in listed.html
    assert others not in listed.html
    assert "1 ○ pending" in overview.text
    await ann.see(f"jobs/{others}", status=404)


async def test_another_tenants_things_are_as_if_they_were_not(console: Console) -> None:
    job_id, letter = (await console.scene.accept()).id, await console.scene.dead()
    gus = await console.visitor("gus")

    pages = {
        path: await gus.see(path, 404) for path in (f"jobs/{job_id}", f"jobs/{job_id}/stream", f"dead/{letter}")
    }
    unknown = await gus.see(f"jobs/{UNKNOWN}", 404)
    sent = [
        await gus.send(f"jobs/{job_id}/cancel"),
        await gus.send(f"dead/{letter}/redrive", note="mine now"),
        await gus.send(f"dead/{letter}/discard", note="mine now"),
    ]

    assert {page.text for page in pages.values()} == {unknown.text}
    assert [answer.status_code for answer in sent] == [404, 404, 404]
    assert (await console.scene.job(job_id)).cancel_requested_at is None
    assert (await console.scene.letter(letter)).state == "open"


async def test_lists_and_counts_are_of_ones_own_tenant(console: Console) -> None:
    job_id, letter = (await console.scene.accept()).id, await console.scene.dead()
    await Scenery(console.scene).succeeded()
    gus = await console.visitor("gus")

    pages = [await gus.see(path) for path in ("", "jobs", "dead", "dead/report", "redrives", "usage", "audit")]

    assert not [page for page in pages if job_id in page.html or letter in page.html or "acme" in page.html]
    assert [count for count in ("0 ○ pending", "0 ✓ succeeded", "0 ✕ dead") if count not in pages[0].text] == []
    assert "Nothing is dead." in pages[0].text
    assert "No model was asked this month." in pages[5].text
    assert "Nothing is open." in pages[3].text
