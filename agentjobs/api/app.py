"""The application over its collaborators."""

import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from agentjobs import __version__
from agentjobs.agents.spec import AgentRegistry
from agentjobs.api import dead_letters, grants, health, jobs, keys, problems
from agentjobs.api.authentication import Authenticator
from agentjobs.api.shown import Links
from agentjobs.api.strict_json import BODY_LIMIT, too_large
from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.ledger import Ledger

log = structlog.get_logger()

Handler = Callable[[Request], Awaitable[Response]]


def create_app(ledger: Ledger, agents: AgentRegistry, *, temporal_ui_url: str | None = None) -> FastAPI:
    """The HTTP API of one installation."""
    app = FastAPI(
        title="agentjobs", version=__version__, summary="Durable jobs for agents.", redoc_url=None, docs_url=None
    )
    app.state.ledger = ledger
    app.state.agents = agents
    app.state.links = Links(temporal_ui_url)
    app.state.authenticator = Authenticator(ledger.identity)
    problems.install(app)
    app.middleware("http")(_guarded)
    for part in (jobs, dead_letters, keys, grants, health):
        app.include_router(part.router)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


async def _guarded(request: Request, handle: Handler) -> Response:
    """The announced length is looked at before anything is spent on the caller; each answer is an event."""
    request_id = uuid.uuid4().hex
    began = time.perf_counter()
    response = await _answered(request, handle)
    response.headers["X-Request-Id"] = request_id
    route = request.scope.get("route")
    log.info(
        "request",
        id=request_id,
        method=request.method if request.method.isalpha() else "other",
        route=getattr(route, "path", "unknown"),
        status=response.status_code,
        duration_ms=round((time.perf_counter() - began) * 1000, 1),
    )
    return response


async def _answered(request: Request, handle: Handler) -> Response:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > BODY_LIMIT:
        return problems.response(request, too_large())
    try:
        return await handle(request)
    except Exception as error:
        if not is_unavailable(error):
            log.error("unforeseen_error", error_type=type(error).__name__)
            return problems.response(request, problems.bug())
        return problems.response(request, problems.unavailable())


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = document["components"]["schemas"]
        # FastAPI declares a form of its own for invalid requests; ours are problems.
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        schemas.update(_schemas_of_problems())
        app.openapi_schema = document
    return app.openapi_schema


def _schemas_of_problems() -> dict[str, Any]:
    schema = problems.ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), problems.ProblemBody.__name__: schema}
