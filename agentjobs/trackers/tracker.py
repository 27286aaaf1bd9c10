"""The seam between the ticket tools and a destination for tickets."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from pydantic import Field

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.job import Frozen, Job
from agentjobs.ledger.database import Connection


class NewTicket(Frozen):
    """A ticket to open."""

    subject: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
    body: Annotated[str, Field(min_length=1, max_length=20_000)]
    category: Annotated[str, Field(min_length=1, max_length=40)]
    urgency: Literal["low", "normal", "high"] = "normal"
    language: Annotated[str, Field(max_length=35)] = "und"


class TicketReceipt(Frozen):
    """What the destination calls the ticket."""

    id: str
    url: str | None = None


class FoundTicket(Frozen):
    """A ticket that a search found."""

    id: str
    subject: str


class Tracker(Protocol):
    """A destination for tickets. `key` is the step key: the same over every retry and redrive."""

    @property
    def effect_class(self) -> EffectClass:
        """What is known about repeating `create`."""

    @property
    def landing_horizon_seconds(self) -> float:
        """How long after an attempt a request of it may still land at the destination, unseen by `find`."""

    async def find(self, key: str, *, job: Job) -> TicketReceipt | None:
        """The operation's ticket, if the destination has one."""

    async def create(
        self, ticket: NewTicket, *, key: str, job: Job, connection: Connection | None
    ) -> TicketReceipt:
        """Open the ticket. `connection` is the open transaction of a transactional tracker."""

    async def close(self, receipt: TicketReceipt, *, job: Job, connection: Connection | None) -> None:
        """Close a ticket that is no longer wanted; closing it twice is no error."""

    async def search(self, query: str, *, job: Job, limit: int) -> list[FoundTicket]:
        """The tenant's tickets that have some of these words, best match first."""
