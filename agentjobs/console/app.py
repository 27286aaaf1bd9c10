"""The console as an application of its own, mounted into the API's process."""

from collections.abc import Callable
from datetime import UTC, datetime

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agentjobs.console import (
    admin,
    approvals,
    audit,
    dead_letters,
    files,
    job_stream,
    jobs,
    overview,
    redrives,
    signing_in,
    usage,
)
from agentjobs.console.answers import refused
from agentjobs.console.places import HOME
from agentjobs.console.rendering import Pages
from agentjobs.console.sessions import Sessions
from agentjobs.console.shell import Shell

ROUTERS = (
    signing_in.router,
    signing_in.signed_in,
    files.router,
    *(
        part.router
        for part in (overview, jobs, job_stream, approvals, dead_letters, redrives, usage, audit, admin)
    ),
)

Clock = Callable[[], datetime]


def mount(app: FastAPI, clock: Clock = lambda: datetime.now(UTC)) -> FastAPI:
    """Serve the console under /console/ of the API's application, over the same collaborators."""
    console = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    console.state = app.state
    console.state.pages = Pages(clock)
    console.state.sessions = Sessions(app.state.ledger.identity, clock)
    console.add_exception_handler(HTTPException, refused)
    console.add_exception_handler(RequestValidationError, refused)
    console.add_middleware(Shell)
    for router in ROUTERS:
        console.include_router(router)
    app.add_route(HOME.rstrip("/"), _home, include_in_schema=False)
    app.mount(HOME.rstrip("/"), console)
    return console


async def _home(_: Request) -> Response:
    return RedirectResponse(HOME, 308)
