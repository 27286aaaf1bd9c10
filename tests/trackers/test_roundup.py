"""What only a real Roundup server can show."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.domain.job import Job
from agentjobs.trackers.roundup import RoundupTracker
from agentjobs.trackers.tracker import TicketReceipt
from tests.trackers.lossy_proxy import LossyProxy
from tests.trackers.places import RoundupPlace, Stored, a_job, a_ticket, a_word, key_of, resent
from tests.trackers.roundup_server import PASSWORD, USER, RoundupServer


@pytest.fixture
async def other_roundup() -> AsyncIterator[RoundupServer]:
    """A server of this test's own, which it may kill."""
    async with RoundupServer.running() as server:
        yield server


def rest(server: RoundupServer) -> httpx.AsyncClient:
    """Roundup's REST interface, past our tracker."""
    return httpx.AsyncClient(
        base_url=f"{server.url}/rest/data/", headers=server.headers, auth=(USER, PASSWORD), trust_env=False
    )


async def test_a_reply_that_was_lost_leaves_a_doubt_and_then_the_ticket_is_found(
    roundup_server: RoundupServer,
) -> None:
    job, ticket = a_job(), a_ticket()
    async with LossyProxy.before(roundup_server.port) as proxy, proxy.client() as client:
        lossy = RoundupTracker(roundup_server.url, USER, SecretStr(PASSWORD), client=client)
        proxy.loses_replies = True
        with pytest.raises(RetryableError) as caught:
            await lossy.create(ticket, key=key_of(job), job=job, connection=None)
        proxy.loses_replies = False
        found = await lossy.find(key_of(job), job=job)
        again = await lossy.create(ticket, key=key_of(job), job=job, connection=None)

    assert (caught.value.category, caught.value.nothing_happened) == (Category.UNAVAILABLE, False)
    assert found is not None
    assert again == found
    assert len(roundup_server.issues(key_of(job))) == 1


async def test_wrong_credentials_are_access_denied_without_telling_them(roundup_server: RoundupServer) -> None:
    wrong = "canary-77aa-wrong"
    # Not our user: four wrong passwords lock one out for minutes.
    tracker, job = RoundupTracker(roundup_server.url, "mallory", SecretStr(wrong)), a_job()

    with pytest.raises(PermanentError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    await tracker.aclose()

    assert caught.value.category is Category.ACCESS_DENIED
    assert wrong not in str(caught.value)
    assert roundup_server.issues(key_of(job)) == []


async def test_after_kill_9_every_acknowledged_ticket_is_there_and_none_twice(
    other_roundup: RoundupServer,
) -> None:
    tracker = RoundupTracker(other_roundup.url, USER, SecretStr(PASSWORD))
    place, jobs = RoundupPlace(other_roundup, tracker), [a_job() for _ in range(40)]
    acknowledged: dict[str, TicketReceipt] = {}
    some_are = asyncio.Event()

    async def create(job: Job) -> None:
        acknowledged[job.id] = await place.create(a_ticket(), job)
        if len(acknowledged) == 5:
            some_are.set()

    creating = [asyncio.create_task(create(job)) for job in jobs]
    await some_are.wait()
    await other_roundup.kill()
    outcomes = await asyncio.gather(*creating, return_exceptions=True)
    before_the_resend = dict(acknowledged)
    await other_roundup.start()
    receipts = {job.id: await resent(place, a_ticket(), job) for job in jobs}
    await tracker.aclose()

    assert any(isinstance(outcome, RetryableError) for outcome in outcomes)
    assert all(outcome is None or isinstance(outcome, RetryableError) for outcome in outcomes)
    assert {job: receipts[job] for job in before_the_resend} == before_the_resend
    assert [len(other_roundup.issues(key_of(job))) for job in jobs] == [1] * len(jobs)


async def test_post_once_tokens_do_not_protect(roundup_server: RoundupServer) -> None:
    job = a_job()
    issue = {"external_key": key_of(job), "title": "Printer", "tenant": "acme"}
    async with rest(roundup_server) as session:
        link = (await session.post("issue/@poe")).json()["data"]["link"]
        failed = await session.post(link, json={**issue, "no_such_property": "x"})
        after_a_failure = await session.post(link, json=issue)
        link = (await session.post("issue/@poe")).json()["data"]["link"]
        created = await session.post(link, json=issue)
        after_a_success = await session.post(link, json=issue)

    # Whether the first use created the issue or failed, the second is told the same, and not which issue it is.
    assert (failed.status_code, created.status_code) == (400, 201)
    assert (after_a_failure.status_code, after_a_success.status_code) == (400, 400)
    assert all("not valid" in reply.json()["error"]["msg"] for reply in (after_a_failure, after_a_success))


async def test_every_field_of_a_ticket_arrives(roundup: RoundupPlace) -> None:
    job = a_job()

    receipt = await roundup.create(a_ticket(), job)

    (issue,) = roundup.server.issues(key_of(job))
    assert (issue["category"], issue["urgency"], issue["language"]) == ("incident", "high", "en")
    assert (issue["tenant"], issue["status"]) == ("acme", "unread")
    assert receipt.url == f"{roundup.server.url}/issue{receipt.id}"


async def test_a_subject_becomes_one_line(roundup: RoundupPlace) -> None:
    job = a_job()

    await roundup.create(a_ticket(subject="  Printer\r\n on\tfire "), job)

    assert await roundup.stored(job) == [Stored("Printer on fire", "It burns.", closed=False)]


@pytest.mark.parametrize(
    "key", ["../../x", "%2e%2e", "a,b", "a&b=c#d", "k\nl", "' OR '1'='1", "日本", "-1", "k" * 1000]
)
async def test_a_key_is_a_value_whatever_is_in_it(roundup: RoundupPlace, key: str) -> None:
    job, key = a_job(), f"{key} {a_word()}"

    created = await roundup.tracker.create(a_ticket(), key=key, job=job, connection=None)

    assert await roundup.tracker.find(key, job=job) == created


async def test_a_key_of_another_tenant_is_a_conflict(roundup: RoundupPlace) -> None:
    job = a_job("acme")
    await roundup.create(a_ticket(), job)
    stranger = job.model_copy(update={"principal": a_job("globex").principal})

    with pytest.raises(PermanentError) as caught:
        await roundup.create(a_ticket(), stranger)

    assert caught.value.category is Category.KEY_CONFLICT


async def test_another_tenants_issue_is_not_closed(roundup: RoundupPlace) -> None:
    job = a_job("acme")
    receipt = await roundup.create(a_ticket(), job)

    with pytest.raises(PermanentError) as caught:
        await roundup.close(receipt, a_job("globex"))

    assert caught.value.category is Category.NOT_FOUND
    assert [ticket.closed for ticket in await roundup.stored(job)] == [False]


async def test_an_edit_between_read_and_close_makes_the_close_try_again(roundup_server: RoundupServer) -> None:
    async def edit_first(request: httpx.Request) -> None:
        if request.method == "PATCH":
            request.headers["If-Match"] = '"of-another-version"'

    # Not the tracker's own client: its event hook plays the person who edits between read and close.
    async with httpx.AsyncClient(event_hooks={"request": [edit_first]}, trust_env=False) as client:
        tracker, job = RoundupTracker(roundup_server.url, USER, SecretStr(PASSWORD), client=client), a_job()
        receipt = await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
        with pytest.raises(RetryableError) as caught:
            await tracker.close(receipt, job=job, connection=None)

    assert (caught.value.category, caught.value.nothing_happened) == (Category.UNAVAILABLE, True)


async def test_a_status_that_the_tracker_does_not_have_is_told(roundup_server: RoundupServer) -> None:
    tracker = RoundupTracker(roundup_server.url, USER, SecretStr(PASSWORD), closed_status="no-such-status")
    job = a_job()
    receipt = await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)

    with pytest.raises(PermanentError) as caught:
        await tracker.close(receipt, job=job, connection=None)
    await tracker.aclose()

    assert caught.value.category is Category.INVALID_INPUT


async def test_a_search_finds_part_of_a_text_without_blanks(roundup: RoundupPlace) -> None:
    receipt = await roundup.create(a_ticket(subject="三楼的打印机着火了"), a_job())

    found = await roundup.tracker.search("打印机", job=a_job(), limit=5)

    assert receipt.id in [ticket.id for ticket in found]


async def test_people_still_open_issues_without_a_key(roundup_server: RoundupServer) -> None:
    keys = [await roundup_server.open_by_hand("By hand") for _ in range(2)]

    assert all(key.startswith("by-hand-") for key in keys)
    assert keys[0] != keys[1]


async def test_another_address_than_the_trackers_own_is_told_with_advice(roundup_server: RoundupServer) -> None:
    # Roundup compares the Origin with its setting `web`: to it, localhost is a stranger.
    elsewhere = roundup_server.url.replace("127.0.0.1", "localhost")
    tracker, job = RoundupTracker(elsewhere, USER, SecretStr(PASSWORD)), a_job()

    with pytest.raises(PermanentError, match="web address") as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    await tracker.aclose()

    assert caught.value.category is Category.INVALID_INPUT


async def test_no_connection_is_kept() -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Connection"])
        return httpx.Response(201, json={"data": {"id": "1"}})

    client, job = httpx.AsyncClient(transport=httpx.MockTransport(handler)), a_job()
    tracker = RoundupTracker("http://tracker.test", USER, SecretStr(PASSWORD), client=client)
    await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)

    # Forty idle connections would shut everybody out of Roundup's server: each is a process of its own.
    assert seen == ["close"]


@pytest.mark.parametrize(
    "answer",
    [
        {
            "json": {
                "error": {"status": 400, "msg": "now: An error occurred. Please check the server log for more."}
            }
        },
        {"html": "<body><p>now: An error occurred. Please check\n the server log for more.</p></body>"},
    ],
)
async def test_an_error_that_roundup_did_not_foresee_leaves_a_doubt(answer: dict[str, Any]) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(400, **answer))
    tracker = RoundupTracker(
        "http://tracker.test", USER, SecretStr(PASSWORD), client=httpx.AsyncClient(transport=transport)
    )
    job = a_job()

    with pytest.raises(JobError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)

    assert isinstance(caught.value, RetryableError)
    assert (caught.value.category, caught.value.nothing_happened) == (Category.UNAVAILABLE, False)


async def test_a_refusal_as_known_without_an_issue_leaves_a_doubt() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(409, json={"error": {"status": 409}})
        # A server that ignores the filter shows somebody else's issue: it must not be adopted.
        return httpx.Response(200, json={"data": {"collection": [{"id": "1", "external_key": "other"}]}})

    client = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    tracker, job = RoundupTracker("http://tracker.test", USER, SecretStr(PASSWORD), client=client), a_job()

    with pytest.raises(RetryableError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)

    assert not caught.value.nothing_happened
