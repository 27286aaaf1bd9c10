"""The built-in tracker's tickets: one an operation, found by any of their words, by their own tenant."""

import asyncio

import pytest

from agentjobs.domain import keys
from tests.ledger.scene import CREATE_TICKET, Scene

TICKET = {"body": "It burns.", "category": "incident", "urgency": "high", "language": "en"}


async def test_an_operation_has_one_ticket_however_often_it_is_sent(scene: Scene) -> None:
    numbers = [await _create(scene, "op-1", subject) for subject in ("First", "Second", "Third")]

    assert len(set(numbers)) == 1
    assert await scene.rows("SELECT id, subject FROM tickets") == [{"id": numbers[0], "subject": "First"}]


async def test_attempts_at_the_same_moment_make_one_ticket(scene: Scene) -> None:
    job = await scene.accept()
    await scene.begin(job.id)

    async def attempt() -> int:
        async with scene.ledger.database.transaction() as connection:
            key = keys.step_key(job.id, CREATE_TICKET)
            await scene.ledger.effects.lock(connection, key)
            return await scene.ledger.tickets.create(
                connection, tenant="acme", operation_key=key, job_id=job.id, subject="Fire", **TICKET
            )

    numbers = await asyncio.gather(*(attempt() for _ in range(10)))

    assert len(set(numbers)) == await scene.count("tickets") == 1


async def test_two_operations_have_two_tickets(scene: Scene) -> None:
    one, other = await _create(scene, "op-1", "Fire"), await _create(scene, "op-2", "Fire")

    assert one != other
    assert await scene.ledger.tickets.of_operation("op-1") == [one]
    assert await scene.ledger.tickets.of_operation("op-3") == []


async def test_a_ticket_of_a_transaction_that_fails_is_not_there(scene: Scene) -> None:
    class Crash(Exception):
        """Between the ticket and the commit."""

    with pytest.raises(Crash):
        async with scene.ledger.database.transaction() as connection:
            await scene.ledger.tickets.create(
                connection, tenant="acme", operation_key="op-1", job_id="j", subject="Fire", **TICKET
            )
            raise Crash

    assert await scene.count("tickets") == 0


@pytest.mark.parametrize("query", ["printer", "PRINTER", "fire", "nothing or printer", "the printer, please!"])
async def test_any_word_of_subject_or_body_finds_a_ticket(scene: Scene, query: str) -> None:
    number = await _create(scene, "op-1", "Printer on fire")
    await _create(scene, "op-2", "Coffee is cold")

    assert [hit.id for hit in await scene.ledger.tickets.search("acme", query, limit=5)] == [number]


@pytest.mark.parametrize("query", ["burns", "Köln", "пожар", "プリンター"])
async def test_words_of_every_language_are_found(scene: Scene, query: str) -> None:
    number = await _create(scene, "op-1", "Köln пожар プリンター")

    assert [hit.id for hit in await scene.ledger.tickets.search("acme", query, limit=5)] == [number]


async def test_the_best_match_comes_first_and_only_so_many(scene: Scene) -> None:
    for number in range(4):
        await _create(scene, f"op-{number}", "Printer is slow")
    best = await _create(scene, "op-5", "Printer on fire, fire, fire")

    hits = await scene.ledger.tickets.search("acme", "printer fire", limit=3)

    assert (len(hits), hits[0].id) == (3, best)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        '"',
        "'",
        '"unbalanced',
        "a:*",
        "!()&|<->",
        "-",
        "--",
        "or",
        "\\",
        "%_",
        "x" * 5000,
        "'; DROP TABLE tickets",
    ],
)
async def test_whatever_a_person_types_is_no_error(scene: Scene, query: str) -> None:
    await _create(scene, "op-1", "Printer on fire")

    assert await scene.ledger.tickets.search("acme", query, limit=5) == []


@pytest.mark.parametrize("query", ["-4711", "printer -v", "error --verbose", "a - b"])
async def test_a_dash_before_a_word_does_not_turn_the_search_round(scene: Scene, query: str) -> None:
    await _create(scene, "op-1", "Coffee is cold")

    # A request is full of options and negative numbers: none of them means "all tickets without it".
    assert await scene.ledger.tickets.search("acme", query, limit=5) == []


async def test_another_tenants_tickets_are_not_found(scene: Scene) -> None:
    await scene.ledger.identity.create_tenant("other")
    await _create(scene, "op-1", "Printer on fire", tenant="other")

    assert await scene.ledger.tickets.search("acme", "printer", limit=5) == []


async def test_a_ticket_is_closed_once_and_by_its_own_tenant(scene: Scene) -> None:
    number = await _create(scene, "op-1", "Fire")

    await _close(scene, "other", number)
    before = await scene.rows("SELECT state, closed_at FROM tickets")
    await _close(scene, "acme", number)
    first = await scene.rows("SELECT state, closed_at FROM tickets")
    await _close(scene, "acme", number)

    assert before == [{"state": "open", "closed_at": None}]
    assert first[0]["state"] == "closed"
    assert await scene.rows("SELECT state, closed_at FROM tickets") == first


async def _create(scene: Scene, operation_key: str, subject: str, tenant: str = "acme") -> int:
    async with scene.ledger.database.transaction() as connection:
        return await scene.ledger.tickets.create(
            connection, tenant=tenant, operation_key=operation_key, job_id="job", subject=subject, **TICKET
        )


async def _close(scene: Scene, tenant: str, number: int) -> None:
    async with scene.ledger.database.transaction() as connection:
        await scene.ledger.tickets.close(connection, tenant, number)
