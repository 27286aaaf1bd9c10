"""What follows from a destination that has no idempotency key and shows what it did a little later."""

import asyncio
from datetime import timedelta
from time import time

import pytest
from pydantic import SecretStr

from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.domain.job import Job
from agentjobs.trackers.github import LABEL, GithubTracker
from agentjobs.trackers.tracker import TicketReceipt
from tests.trackers.github_double import REPOSITORY, TOKEN, Fault
from tests.trackers.github_faults import (
    answer,
    drop_the_reply,
    fail_after_executing,
    hang,
    land_late,
    say_nonsense,
    say_too_much,
)
from tests.trackers.places import GithubPlace, a_job, a_ticket, a_word, key_of, resent


async def failed(place: GithubPlace, job: Job) -> JobError:
    """What this creation fails with."""
    with pytest.raises(JobError) as caught:
        await place.create(a_ticket(), job)
    assert TOKEN not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("fault", [drop_the_reply, fail_after_executing, say_too_much, say_nonsense])
async def test_a_lost_reply_leaves_a_doubt_and_then_the_issue_is_adopted(
    github: GithubPlace, fault: Fault
) -> None:
    job = a_job()
    github.double.will(fault)

    error = await failed(github, job)
    receipt = await resent(github, a_ticket(), job)

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.UNAVAILABLE, False)
    assert receipt.id == "1"
    assert github.double.executed == [("created", 1, "Printer on fire")]


async def test_silence_leaves_a_doubt(github: GithubPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    job = a_job()
    monkeypatch.setattr("agentjobs.trackers.http.WHOLE_SECONDS", 0.2)
    github.double.will(hang)

    error = await failed(github, job)

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.TIMEOUT, False)
    assert await github.tracker.find(key_of(job), job=job) == await resent(github, a_ticket(), job)


async def test_a_request_that_lands_late_is_not_found_before_and_found_after(github: GithubPlace) -> None:
    job, landing = a_job(), asyncio.Event()
    github.double.will(land_late(landing))

    await failed(github, job)
    before = await github.tracker.find(key_of(job), job=job)
    landing.set()
    await asyncio.sleep(0)  # lets the landing run
    after = await github.tracker.find(key_of(job), job=job)

    # That is what the horizon is for: without it the second attempt would have sent in between.
    assert before is None
    assert after is not None
    assert github.tracker.landing_horizon_seconds == 120


async def test_an_issue_that_is_not_indexed_yet_is_found_in_the_list(github: GithubPlace) -> None:
    job = a_job()
    github.double.index_is_paused = True

    created = await github.create(a_ticket(), job)

    assert await github.tracker.find(key_of(job), job=job) == created


async def test_an_issue_older_than_the_list_is_read_back_is_found_in_the_index(github: GithubPlace) -> None:
    job = a_job()
    github.double.clock_ahead = -timedelta(days=3)
    created = await github.create(a_ticket(), job)
    for _ in range(60):
        await github.create(a_ticket(), a_job())

    found = await github.tracker.find(key_of(job), job=job)

    assert found == created
    assert [asked.path for asked in github.double.asked[-2:]] == [f"/repos/{REPOSITORY}/issues", "/search/issues"]


async def test_an_issue_on_a_later_page_is_found(github: GithubPlace) -> None:
    job = a_job()
    github.double.index_is_paused = True
    created = await github.create(a_ticket(), job)
    for _ in range(60):
        await github.create(a_ticket(), a_job())

    assert await github.tracker.find(key_of(job), job=job) == created


async def test_a_search_that_was_cut_short_is_no_proof_of_absence(github: GithubPlace) -> None:
    job = a_job()
    github.double.search_is_incomplete = True

    with pytest.raises(RetryableError) as caught:
        await github.tracker.find(key_of(job), job=job)

    assert not caught.value.nothing_happened


async def test_of_two_issues_with_one_key_the_older_is_adopted(github: GithubPlace) -> None:
    job = a_job()
    first = await github.create(a_ticket(), job)
    await github.create(a_ticket(), job)

    assert await github.tracker.find(key_of(job), job=job) == first
    assert await github.tracker.find(key_of(job), job=job) == first


async def test_a_mark_in_a_customers_text_is_not_taken_for_ours(github: GithubPlace) -> None:
    victim = a_job()
    mark = f"<!-- agentjobs:{key_of(victim)} -->\n<!-- agentjobs-tenant:acme -->\n"
    await github.create(a_ticket(subject=mark.strip(), body=mark), a_job())

    assert await github.tracker.find(key_of(victim), job=victim) is None


@pytest.mark.parametrize("key", ["../../x", 'a" OR "b', "k --> <b>", "k\nl", "日本", "k--"])
async def test_a_key_is_a_value_whatever_is_in_it(github: GithubPlace, key: str) -> None:
    job = a_job()

    created = await github.tracker.create(a_ticket(), key=key, job=job, connection=None)

    assert await github.tracker.find(key, job=job) == created
    assert {asked.path for asked in github.double.asked} <= {f"/repos/{REPOSITORY}/issues", "/search/issues"}


async def test_without_the_right_to_label_tickets_are_still_found(github: GithubPlace) -> None:
    job, word = a_job(), a_word()
    github.double.may_push = False

    created = await github.create(a_ticket(subject=word), job)

    assert github.double.issue(1)["labels"] == []
    assert await github.tracker.find(key_of(job), job=job) == created
    assert len(await github.tracker.search(word, job=job, limit=5)) == 1


async def test_a_ticket_carries_label_category_urgency_and_language(github: GithubPlace) -> None:
    await github.create(a_ticket(subject="  Printer\r\n on\tfire "), a_job())

    issue = github.double.issue(1)
    assert issue["title"] == "Printer on fire"
    assert issue["labels"] == [{"name": LABEL}]
    assert issue["body"].endswith("\n---\nCategory: incident · Urgency: high · Language: en")


@pytest.mark.parametrize("status", [403, 429])
async def test_a_secondary_limit_waits_as_it_is_told(github: GithubPlace, status: int) -> None:
    github.double.will(answer(status, "You have exceeded a secondary rate limit.", retry_after="33"))

    error = await failed(github, a_job())

    assert isinstance(error, RetryableError)
    assert (error.category, error.nothing_happened) == (Category.RATE_LIMITED, True)
    assert error.retry_after_seconds == 33
    assert github.double.executed == []


@pytest.mark.parametrize("status", [403, 429])
async def test_an_exhausted_limit_waits_for_its_reset(github: GithubPlace, status: int) -> None:
    reset = str(int(time()) + 1800)
    github.double.will(
        answer(status, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset=reset)
    )

    error = await failed(github, a_job())

    assert isinstance(error, RetryableError)
    assert error.category is Category.RATE_LIMITED
    assert error.retry_after_seconds == pytest.approx(1800, abs=5)


async def test_an_absurd_reset_is_no_crash(github: GithubPlace) -> None:
    github.double.will(answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 12))

    assert (await failed(github, a_job())).category is Category.RATE_LIMITED


@pytest.mark.parametrize(
    ("status", "message"), [(403, "You have exceeded a secondary rate limit."), (429, "Slow down")]
)
async def test_a_limit_that_does_not_say_how_long_waits_a_minute(
    github: GithubPlace, status: int, message: str
) -> None:
    github.double.will(answer(status, message))

    error = await failed(github, a_job())

    assert isinstance(error, RetryableError)
    assert (error.category, error.retry_after_seconds) == (Category.RATE_LIMITED, 60)


async def test_a_refused_permission_is_no_rate_limit(github: GithubPlace) -> None:
    github.double.will(answer(403, "Resource not accessible by personal access token"))

    error = await failed(github, a_job())

    assert (type(error), error.category) == (PermanentError, Category.ACCESS_DENIED)


async def test_a_wrong_token_is_access_denied_without_telling_it(github: GithubPlace) -> None:
    wrong = "canary-55cc-wrong"
    tracker, job = GithubTracker(REPOSITORY, SecretStr(wrong), base_url=github.double.base_url), a_job()

    with pytest.raises(PermanentError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    await tracker.aclose()

    assert caught.value.category is Category.ACCESS_DENIED
    assert wrong not in str(caught.value)


async def test_a_repository_that_is_not_there_is_not_found(github: GithubPlace) -> None:
    tracker, job = GithubTracker("acme/other", SecretStr(TOKEN), base_url=github.double.base_url), a_job()

    with pytest.raises(PermanentError) as caught:
        await tracker.create(a_ticket(), key=key_of(job), job=job, connection=None)
    await tracker.aclose()

    assert caught.value.category is Category.NOT_FOUND


async def test_an_issue_that_was_deleted_needs_no_closing(github: GithubPlace) -> None:
    job = a_job()
    receipt = await github.create(a_ticket(), job)
    github.double.delete(int(receipt.id))

    await github.close(receipt, job)

    assert github.double.executed == [("created", 1, "Printer on fire")]


async def test_closing_what_never_was_is_told(github: GithubPlace) -> None:
    with pytest.raises(PermanentError) as caught:
        await github.close(TicketReceipt(id="404"), a_job())

    assert caught.value.category is Category.NOT_FOUND
