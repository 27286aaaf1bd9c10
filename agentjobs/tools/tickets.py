"""The ticket tools, over whichever tracker the worker was given."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.job import Frozen
from agentjobs.tools.tool import ReconcilableTool, Tool, ToolContext, UndoableTool
from agentjobs.trackers.tracker import FoundTicket, NewTicket, TicketReceipt, Tracker

TICKETS_CREATE = "tickets:create"


class CreateTicket(UndoableTool[NewTicket], ReconcilableTool[NewTicket]):
    """Open one ticket; undone by closing it."""

    name = "create_ticket"
    description = "Open one ticket for a colleague to act on."
    arguments = NewTicket
    grant = TICKETS_CREATE

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    @property
    def effect_class(self) -> EffectClass:
        """The destination's."""
        return self._tracker.effect_class

    @property
    def landing_horizon_seconds(self) -> float:
        """The destination's."""
        return self._tracker.landing_horizon_seconds

    async def look_up(self, context: ToolContext) -> TicketReceipt | None:
        """The ticket of this key, if it was created."""
        return await self._tracker.find(context.key, job=context.job)

    async def call(self, arguments: NewTicket, context: ToolContext) -> TicketReceipt:
        """The ticket's id at its destination."""
        return await self._tracker.create(
            arguments, key=context.key, job=context.job, connection=context.connection
        )

    async def undo(self, receipt: dict[str, Any], context: ToolContext) -> None:
        """Close the ticket."""
        await self._tracker.close(
            TicketReceipt.model_validate(receipt), job=context.job, connection=context.connection
        )


class Query(Frozen):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=500)]


class Hits(Frozen):
    """What was found."""

    tickets: tuple[FoundTicket, ...]


class SearchTickets(Tool[Query]):
    """Look for tickets on the same matter."""

    name = "search_tickets"
    description = "Find this tenant's existing tickets that have some of these words."
    arguments = Query

    _LIMIT = 5

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    @property
    def effect_class(self) -> EffectClass:
        """A search changes nothing."""
        return EffectClass.READ_ONLY

    @property
    def short(self) -> bool:
        """Where the tickets are in our own database."""
        return self._tracker.effect_class is EffectClass.TRANSACTIONAL

    async def call(self, arguments: Query, context: ToolContext) -> Hits:
        """At most five tickets, best match first."""
        found = await self._tracker.search(arguments.query, job=context.job, limit=self._LIMIT)
        return Hits(tickets=tuple(found))
