"""The built-in tracker's tickets."""

from __future__ import annotations

import re
from typing import Any

from agentjobs.ledger.database import Connection, Database
from agentjobs.ledger.records import Record

_WORD = re.compile(r"\w+")
"""Signs between words are operators to a web search: a dash would turn it round."""


class TicketHit(Record):
    """A ticket as a search finds it."""

    id: int
    subject: str
    category: str
    state: str


class Tickets:
    """One ticket per operation key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, connection: Connection, **fields: Any) -> int:
        """Create the operation's ticket in the caller's transaction, or find the one it has."""
        number: int = await self._database.run.create_ticket(connection, **fields)
        return number

    async def of_operation(self, operation_key: str) -> list[int]:
        """The tickets of an operation: at most one, or a promise is broken."""
        rows = self._database.run.find_tickets(self._database.pool, operation_key=operation_key)
        return [row["id"] async for row in rows]

    async def close(self, connection: Connection, tenant: str, number: int) -> None:
        """Close a ticket; repeating it changes nothing."""
        await self._database.run.close_ticket(connection, tenant=tenant, id=number)

    async def search(self, tenant: str, query: str, limit: int) -> list[TicketHit]:
        """The tenant's tickets with any of these words, best match first."""
        any_word = " or ".join(_WORD.findall(query))
        rows = self._database.run.search_tickets(self._database.pool, tenant=tenant, query=any_word, limit=limit)
        return [TicketHit.model_validate(dict(row)) async for row in rows]
