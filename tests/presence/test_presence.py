"""A worker's presence on a real PostgreSQL: cut off, given up, stopped."""

from agentjobs.ledger.ledger import Ledger
from agentjobs.presence import Presence
from tests.world import eventually

SESSIONS = (
    "FROM pg_stat_activity WHERE application_name = 'agentjobs-worker-presence' AND datname = current_database()"
)


async def sessions(ledger: Ledger) -> int:
    """How many sessions say that a worker lives."""
    count: int = await ledger.database.pool.fetchval(f"SELECT count(*) {SESSIONS}")
    return count


async def cut_off(ledger: Ledger) -> None:
    """End the worker's session from the other side."""
    await ledger.database.pool.execute(f"SELECT pg_terminate_backend(pid) {SESSIONS}")


async def test_a_worker_that_was_only_cut_off_comes_back_as_itself(ledger: Ledger, database_url: str) -> None:
    async with Presence(database_url, ledger.workers, "w").held() as present:
        first = present.id
        await cut_off(ledger)

        async def back() -> bool:
            return await sessions(ledger) == 1 and await ledger.workers.without_lock() == set()

        await eventually(back, "the session to be opened again")

        assert present.id == first
        assert await sessions(ledger) == 1


async def test_a_worker_that_was_given_up_goes_on_under_a_new_id(ledger: Ledger, database_url: str) -> None:
    async with Presence(database_url, ledger.workers, "w").held() as present:
        first = present.id
        await ledger.workers.mark_lost({first})

        async def renamed() -> bool:
            return present.id != first

        await eventually(renamed, "a new id")

        assert [worker.id for worker in await ledger.workers.to_take_over()] == [first]
        assert await sessions(ledger) == 1


async def test_a_worker_that_stops_is_not_missed(ledger: Ledger, database_url: str) -> None:
    async with Presence(database_url, ledger.workers, "w").held():
        pass

    async def gone() -> bool:
        return await sessions(ledger) == 0

    await eventually(gone, "the session to end")
    assert await ledger.workers.without_lock() == set()
    assert await ledger.workers.to_take_over() == []
