"""Databases for tests of the schema itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import asyncpg

from agentjobs.stack.postgres import EmbeddedPostgres

_numbers = count(1)


@asynccontextmanager
async def empty_database(postgres: EmbeddedPostgres, template: str = "template0") -> AsyncIterator[str]:
    """A database of its own, copied from the template (PostgreSQL's own empty one); gone afterwards."""
    name = f"schema_{next(_numbers)}"
    session = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await session.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield postgres.dsn(name)
        await session.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await session.close()
