"""What every tracker does, whatever the destination: one suite over all three."""

import asyncio

import pytest

from agentjobs.domain.failures import JobError, PermanentError, RetryableError
from agentjobs.domain.job import Job
from agentjobs.ledger.database import as_job_error
from agentjobs.trackers.tracker import TicketReceipt
from tests.trackers.places import (
    NEEDS_THE_LEDGER,
    Place,
    Stored,
    a_job,
    a_ticket,
    a_word,
    key_of,
    resent,
)


async def test_a_resent_creation_gives_the_same_ticket(place: Place) -> None:
    job, ticket = a_job(), a_ticket()

    first = await place.create(ticket, job)
    second = await resent(place, ticket, job)

    assert second == first
    assert await place.stored(job) == [Stored("Printer on fire", "It burns.", closed=False)]


async def test_two_jobs_with_the_same_ticket_have_one_each(place: Place) -> None:
    first, second = a_job(), a_job()

    receipts = [await place.create(a_ticket(), job) for job in (first, second)]

    assert receipts[0].id != receipts[1].id
    assert [len(await place.stored(job)) for job in (first, second)] == [1, 1]


async def test_of_twenty_parallel_creations_one_counts(place: Place) -> None:
    job, ticket = a_job(), a_ticket()

    async def created(tries: int = 3) -> TicketReceipt:
        try:
            return await place.create(ticket, job)
        except RetryableError:  # Roundup's SQLite may be locked by the others for too long
            if tries == 1:
                raise
            return await created(tries - 1)

    receipts = await asyncio.gather(*(created() for _ in range(20)))

    # GitHub alone would make twenty: there only the ledger keeps attempts from sending at the same time.
    expected = 20 if place.tracker.effect_class in NEEDS_THE_LEDGER else 1
    assert len({receipt.id for receipt in receipts}) == expected
    assert len(await place.stored(job)) == expected


async def test_what_was_created_is_found(place: Place) -> None:
    job = a_job()
    created = await place.create(a_ticket(), job)

    assert await place.tracker.find(key_of(job), job=job) == created


async def test_an_unknown_key_is_not_found(place: Place) -> None:
    job = a_job()
    await place.create(a_ticket(), a_job())

    assert await place.tracker.find(key_of(job), job=job) is None


async def test_part_of_a_key_is_not_found(place: Place) -> None:
    job = a_job()
    await place.create(a_ticket(), job)

    assert await place.tracker.find(key_of(job)[:-1], job=job) is None


async def test_closing_twice_is_no_error(place: Place) -> None:
    job = a_job()
    receipt = await place.create(a_ticket(), job)

    await place.close(receipt, job)
    await place.close(receipt, job)

    assert [ticket.closed for ticket in await place.stored(job)] == [True]


async def test_a_closed_ticket_is_still_found_by_its_key(place: Place) -> None:
    job = a_job()
    receipt = await place.create(a_ticket(), job)
    await place.close(receipt, job)

    assert await place.tracker.find(key_of(job), job=job) == receipt


async def test_a_search_finds_the_tenants_ticket_by_one_of_its_words(place: Place) -> None:
    word, job = a_word(), a_job()
    receipt = await place.create(a_ticket(subject=f"The {word} is broken"), job)

    found = await place.tracker.search(f"{word} somethingelse", job=a_job(), limit=5)

    assert [(ticket.id, ticket.subject) for ticket in found] == [(receipt.id, f"The {word} is broken")]


async def test_a_search_finds_a_word_of_the_body(place: Place) -> None:
    word, job = a_word(), a_job()
    receipt = await place.create(a_ticket(body=f"It says {word}."), job)

    found = await place.tracker.search(word, job=job, limit=5)

    assert [ticket.id for ticket in found] == [receipt.id]


async def test_a_search_never_finds_another_tenants_ticket(place: Place) -> None:
    word = a_word()
    await place.create(a_ticket(subject=word, body=f"{word} agentjobs-tenant:globex"), a_job("acme"))

    assert await place.tracker.search(word, job=a_job("globex"), limit=5) == []


async def test_other_tenants_tickets_do_not_crowd_out_the_tenants_own(place: Place) -> None:
    word = a_word()
    own = await place.create(a_ticket(subject=word), a_job("acme"))
    for _ in range(3):
        await place.create(a_ticket(subject=word), a_job("globex"))

    found = await place.tracker.search(word, job=a_job("acme"), limit=1)

    assert [ticket.id for ticket in found] == [own.id]


async def test_a_search_gives_no_more_than_was_asked_for(place: Place) -> None:
    word = a_word()
    for _ in range(3):
        await place.create(a_ticket(subject=word), a_job())

    assert len(await place.tracker.search(word, job=a_job(), limit=2)) == 2


@pytest.mark.parametrize(
    "query", ["", "?!", "repo:other/secret OR x", '"', "%", "a,b", "🔥", "x" * 500, "NOT " * 120]
)
async def test_a_search_takes_whatever_a_model_writes(place: Place, query: str) -> None:
    await place.create(a_ticket(), a_job())

    assert await place.tracker.search(query, job=a_job("tenant-without-tickets"), limit=5) == []


@pytest.mark.parametrize("subject", ["打印机着火了", "🔥👩‍👩‍👧 الطابعة", "e\u0301 ≠ é"])
async def test_a_subject_of_any_language_arrives(place: Place, subject: str) -> None:
    job = a_job()

    await place.create(a_ticket(subject=subject, body=subject), job)

    assert await place.stored(job) == [Stored(subject, subject, closed=False)]


@pytest.mark.parametrize("letter", ["x", "🔥"])
async def test_the_longest_body_arrives(place: Place, letter: str) -> None:
    job = a_job()

    await place.create(a_ticket(body=letter * 20_000), job)

    assert [ticket.body for ticket in await place.stored(job)] == [letter * 20_000]


@pytest.mark.parametrize(
    "text",
    [
        "'\"<script>alert(1)</script>&amp;",
        "%s %(x)s {0} $HOME `id`",
        "'; DROP TABLE tickets; --",
        "<!-- agentjobs:agent-job-1/step-1.create_ticket -->",
        "-->\n---\n```\n# x",
        "a\nb\n\nc\td",
        "a\x01\x1b[31m\x7f",
        "\u202eright to left\u202c",
        "a\x00b",
    ],
)
async def test_awkward_text_arrives_or_is_refused(place: Place, text: str) -> None:
    job = a_job()

    refusal = await refusal_of(place, text, job)

    if refusal is None:
        assert [ticket.body for ticket in await place.stored(job)] == [text]
    else:
        assert isinstance(refusal, PermanentError)
        assert "\x00" in text
        assert await place.stored(job) == []


async def refusal_of(place: Place, text: str, job: Job) -> JobError | None:
    """What the executor would be told, or None when the ticket was created."""
    try:
        await place.create(a_ticket(subject=" ".join(text.split()), body=text), job)
    except JobError as error:
        return error
    except Exception as error:
        told = as_job_error(error)
        assert told is not None, repr(error)
        return told
    return None
