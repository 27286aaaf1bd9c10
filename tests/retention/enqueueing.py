"""A program of somebody else's that writes a row of its own and a job together, and stops where it is told to.

Arguments: the database's address, the tenant, and `before` or `after` the commit. It says "here", and waits.
"""

import asyncio
import sys

import asyncpg

from agentjobs.enqueue import enqueue


async def main(dsn: str, tenant: str, where: str) -> None:
    """One order, one job."""
    connection = await asyncpg.connect(dsn)
    async with connection.transaction():
        await connection.execute("INSERT INTO orders (item) VALUES ('printer')")
        await enqueue(connection, tenant=tenant, user="ann", text="My printer is on fire", key="order-1")
        if where == "before":
            await _wait()
    await _wait()


async def _wait() -> None:
    sys.stdout.write("here\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
