"""What wakes a job's page: the job's event stream, under the session instead of a key."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from agentjobs.api import events as api
from agentjobs.api.parts import LedgerPart, LinksPart
from agentjobs.console.route import PageRoute, Visit
from agentjobs.console.sessions import COOKIE, Session, Sessions

router = APIRouter(prefix="/jobs", route_class=PageRoute)


@router.get("/{id}/stream")
async def stream(
    id: str,
    request: Request,
    visit: Visit,
    ledger: LedgerPart,
    links: LinksPart,
    last_event_id: str | None = None,
) -> Response:
    """The same stream that the API gives; it ends with the session."""
    return await api.streamed(
        id, visit.caller, request, ledger, links, last_event_id, may_go_on=_holds(request, visit)
    )


def _holds(request: Request, session: Session) -> Callable[[], Awaitable[bool]]:
    sessions: Sessions = request.app.state.sessions
    cookie = session.fresh_cookie or request.cookies.get(COOKIE)

    async def holds() -> bool:
        known = await sessions.known(cookie)
        return known is not None and known.caller == session.caller

    return holds
