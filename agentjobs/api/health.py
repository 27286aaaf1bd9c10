"""Health and readiness, for whoever watches the process. No key is needed, and nothing is told."""

from fastapi import APIRouter, Request

from agentjobs.api.declared import only
from agentjobs.api.parts import ledger_of
from agentjobs.api.schemas import Health

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=Health, operation_id="health", summary="The process answers")
async def health() -> Health:
    """Restart it when this does not answer."""
    return Health()


@router.get(
    "/readyz", response_model=Health, operation_id="ready", summary="Jobs are accepted", responses=only(503)
)
async def ready(request: Request) -> Health:
    """Send it no traffic while this is 503: the database does not answer."""
    await ledger_of(request).outbox.backlog()
    return Health()
