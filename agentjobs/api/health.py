"""Health and readiness, for whoever watches the process. No key is needed, and nothing is told."""

import asyncio

from fastapi import APIRouter, Request

from agentjobs.api.declared import only
from agentjobs.api.parts import ledger_of
from agentjobs.api.problems import RETRY_SECONDS, Problem
from agentjobs.api.schemas import Health

router = APIRouter(tags=["health"])

_LATER = {"Retry-After": str(RETRY_SECONDS)}
READY_SECONDS = 2.0
"""A probe is asked every few seconds, and must not wait in the line that it reports."""


@router.get(
    "/healthz",
    response_model=Health,
    operation_id="health",
    summary="The process answers",
    responses=only(400, 413, 414, 431, 500),
)
async def health() -> Health:
    """Restart it when this does not answer."""
    return Health()


@router.get(
    "/readyz",
    response_model=Health,
    operation_id="ready",
    summary="Jobs are accepted",
    responses=only(400, 413, 414, 431, 500, 503),
)
async def ready(request: Request) -> Health:
    """Send it no traffic while this is 503: the database does not answer, or the process is about to end."""
    if request.app.state.streams.closed:
        raise Problem(503, "ending", "This process is about to end: ask another one.", headers=_LATER)
    async with asyncio.timeout(READY_SECONDS):
        await ledger_of(request).outbox.backlog()
    return Health()
