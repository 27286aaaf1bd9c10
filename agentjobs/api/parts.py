"""What routes work with, given to the application at its start."""

import re
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from agentjobs.agents.spec import AgentRegistry
from agentjobs.api.problems import not_found
from agentjobs.api.shown import Links
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.ledger import Ledger

T = TypeVar("T")
_ID = re.compile(IDENTIFIER_PATTERN)


def ledger_of(request: Request) -> Ledger:
    """The ledger. Raises the 404 of an unknown id for a path id that can be none."""
    given = request.path_params.get("id")
    if given is not None and not _ID.fullmatch(given):
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


LedgerPart = Annotated[Ledger, Depends(ledger_of)]
LinksPart = Annotated[Links, Depends(links_of)]


def found(thing: T | None) -> T:
    """The thing, or 404."""
    if thing is None:
        raise not_found()
    return thing
