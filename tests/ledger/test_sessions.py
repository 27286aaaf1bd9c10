"""What a session of the pool brings with it to its next user."""

from agentjobs.ledger.ledger import Ledger


async def test_a_session_goes_back_without_a_round_trip(ledger: Ledger) -> None:
    seen: list[str] = []
    async with ledger.database.pool.acquire() as session:
        session.add_query_logger(lambda record: seen.append(record.query))

        await session.fetchval("SELECT 1")
    await ledger.database.pool.fetchval("SELECT 2")

    assert seen == ["SELECT 1", "SELECT 2"]


async def test_a_transaction_left_open_does_not_reach_the_next_user(ledger: Ledger) -> None:
    async with ledger.database.pool.acquire() as session:
        await session.execute("BEGIN")
        await session.execute("INSERT INTO tenants (id) VALUES ('left')")
        left = await session.fetchval("SELECT pg_backend_pid()")

    async with ledger.database.pool.acquire() as session:
        same = await session.fetchval("SELECT pg_backend_pid()") == left
        under_way = session.is_in_transaction()
    there = await ledger.database.pool.fetchval("SELECT count(*) FROM tenants WHERE id = 'left'")

    assert (same, under_way, there) == (True, False, 0)
