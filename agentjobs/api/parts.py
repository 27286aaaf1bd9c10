"""What routes work with, given to the application at its start."""

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from agentjobs.agents.spec import AgentRegistry
from agentjobs.api.problems import erased, not_found
from agentjobs.api.shown import Links
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.domain.quotas import Limits
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import DeadLetterRecord, JobRecord

T = TypeVar("T")
_ID = re.compile(IDENTIFIER_PATTERN)
_NAMES_OF_IDS = ("id", "delivery")


def ledger_of(request: Request) -> Ledger:
    """The ledger. Raises the 404 of an unknown id for a path id that can be none."""
    ids = [given for name, given in request.path_params.items() if name in _NAMES_OF_IDS]
    if not all(_ID.fullmatch(given) for given in ids):
        raise not_found()
    ledger: Ledger = request.app.state.ledger
    return ledger


def links_of(request: Request) -> Links:
    """Where things are."""
    links: Links = request.app.state.links
    return links


def failpoints_of(request: Request) -> Failpoints:
    """The failpoints of this process: none, outside of tests."""
    failpoints: Failpoints = request.app.state.failpoints
    return failpoints


def agents_of(request: Request) -> AgentRegistry:
    """The agents that take jobs."""
    agents: AgentRegistry = request.app.state.agents
    return agents


def quotas_of(request: Request) -> Limits:
    """The quotas of tenants that have none of their own."""
    quotas: Limits = request.app.state.quotas
    return quotas


def _here(part: Callable[[Request], T]) -> Any:
    # FastAPI would hand a plain function to a thread, which costs more than most of our routes do.
    async def solved(request: Request) -> T:
        return part(request)

    return Depends(solved)


LedgerPart = Annotated[Ledger, _here(ledger_of)]
LinksPart = Annotated[Links, _here(links_of)]
QuotasPart = Annotated[Limits, _here(quotas_of)]


def found(thing: T | None) -> T:
    """The thing, or 404; 410 for a job or a letter that was erased."""
    if thing is None:
        raise not_found()
    if isinstance(thing, JobRecord | DeadLetterRecord) and thing.erased_at is not None:
        raise erased()
    return thing
