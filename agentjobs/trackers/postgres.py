"""The built-in tracker: tickets in the ledger's own database, so a ticket commits with its effect."""

from __future__ import annotations

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.job import Job
from agentjobs.ledger.database import Connection
from agentjobs.ledger.tickets import Tickets
from agentjobs.trackers.tracker import FoundTicket, NewTicket, TicketReceipt

_PREFIX = "T-"


class PostgresTracker:
    """Tickets in the table `tickets`."""

    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets

    @property
    def effect_class(self) -> EffectClass:
        """Ticket and effect row commit together."""
        return EffectClass.TRANSACTIONAL

    @property
    def landing_horizon_seconds(self) -> float:
        """What was not committed will not be."""
        return 0.0

    async def find(self, key: str, *, job: Job) -> TicketReceipt | None:  # noqa: ARG002 - the key says it all
        """By the unique operation key."""
        numbers = await self._tickets.of_operation(key)
        return TicketReceipt(id=f"{_PREFIX}{numbers[0]}") if numbers else None

    async def create(
        self, ticket: NewTicket, *, key: str, job: Job, connection: Connection | None
    ) -> TicketReceipt:
        """Insert the operation's ticket, or find the one it has."""
        number = await self._tickets.create(
            _required(connection),
            tenant=job.principal.tenant,
            operation_key=key,
            job_id=job.id,
            **ticket.model_dump(),
        )
        return TicketReceipt(id=f"{_PREFIX}{number}")

    async def close(self, receipt: TicketReceipt, *, job: Job, connection: Connection | None) -> None:
        """Close it in the undo's own transaction."""
        number = int(receipt.id.removeprefix(_PREFIX))
        await self._tickets.close(_required(connection), job.principal.tenant, number)

    async def search(self, query: str, *, job: Job, limit: int) -> list[FoundTicket]:
        """Full-text search over the tenant's tickets."""
        hits = await self._tickets.search(job.principal.tenant, query, limit)
        return [FoundTicket(id=f"{_PREFIX}{hit.id}", subject=hit.subject) for hit in hits]


def _required(connection: Connection | None) -> Connection:
    if connection is None:
        raise TypeError("the postgres tracker works in the transaction of its effect")
    return connection
