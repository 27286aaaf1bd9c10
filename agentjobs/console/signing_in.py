"""Signing in with a key, and out."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from agentjobs.api.authentication import Authenticator
from agentjobs.console.forms import is_by_https, read_form
from agentjobs.console.places import SIGN_IN, ours
from agentjobs.console.rendering import page
from agentjobs.console.route import PageRoute, set_cookie
from agentjobs.console.sessions import COOKIE, Session, Sessions

WRONG: Final = "No key of this installation. Check that it is whole, and neither revoked nor expired."

router = APIRouter()
signed_in = APIRouter(route_class=PageRoute)


@router.get("/sign-in")
async def form(request: Request, next: str = "") -> Response:
    """One field. Who is signed in may take another key."""
    return page(request, "sign_in.html", next=ours(next), wrong=None)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """The key is looked at here, once, and kept nowhere."""
    given = await read_form(request)
    target = ours(given.text("next") or "")
    session = await _session(request, given.text("key") or "")
    if session is None:
        answer = page(request, "sign_in.html", next=target, wrong=WRONG)
        answer.status_code = 401
        return answer
    answer = RedirectResponse(target, 303)
    set_cookie(answer, session)
    return answer


@signed_in.post("/sign-out")
async def sign_out() -> Response:
    """Forget the session in this browser."""
    answer = RedirectResponse(SIGN_IN, 303)
    answer.delete_cookie(COOKIE, path="/console", httponly=True, samesite="strict")
    return answer


async def _session(request: Request, key: str) -> Session | None:
    authenticator: Authenticator = request.app.state.authenticator
    sessions: Sessions = request.app.state.sessions
    peer = request.client.host if request.client else ""
    caller = await authenticator.caller_at(peer, key.strip())
    return None if caller is None else await sessions.begin(caller, is_by_https=is_by_https(request))
