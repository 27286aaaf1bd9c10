"""The route of each page that needs a session. No endpoint runs before the checks of this file."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import RedirectResponse

from agentjobs.api.authentication import Having
from agentjobs.api.problems import Problem
from agentjobs.api.strict_route import ANSWER_SECONDS
from agentjobs.console.forms import Form, check_token, read_form
from agentjobs.console.places import SIGN_IN, ours
from agentjobs.console.sessions import COOKIE, LONGEST_SECONDS, Session, Sessions
from agentjobs.ledger.identity import Role

WANTS_A_PART: Final = "x-refresh"
"""Sent by our script: it cannot use the sign-in page, and hears 401 instead of being sent there."""


class PageRoute(APIRoute):
    """Session first, then the form with its token, then the endpoint."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the checks."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            async with asyncio.timeout(ANSWER_SECONDS):
                session = await _session(request)
            if session is None:
                return _sign_in_first(request)
            # The API's own guard of roles looks here.
            request.state.session, request.state.caller = session, session.caller
            if request.method == "POST":
                request.state.form = await read_form(request)
                check_token(request.state.form, session)
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await handle(request)
            set_cookie(answer, session)
            return answer

        return checked


async def _session(request: Request) -> Session | None:
    sessions: Sessions = request.app.state.sessions
    return await sessions.known(request.cookies.get(COOKIE))


def _sign_in_first(request: Request) -> Response:
    if request.method != "GET" or request.headers.get(WANTS_A_PART):
        raise Problem(401, "signed_out", "You are signed out: sign in again.")
    return RedirectResponse(f"{SIGN_IN}?next={ours(request.url.path)}", 303)


def set_cookie(answer: Response, session: Session) -> None:
    """Hand the session to the browser, if it has not this cookie yet. By TLS it never goes back without."""
    if session.fresh_cookie is not None:
        answer.set_cookie(
            COOKIE,
            session.fresh_cookie,
            max_age=LONGEST_SECONDS,
            path="/console",
            httponly=True,
            samesite="strict",
            secure=session.is_by_https,
        )


def _of_request(request: Request) -> Session:
    session: Session = request.state.session
    return session


def _form_of(request: Request) -> Form:
    form: Form = request.state.form
    return form


Visit = Annotated[Session, Depends(_of_request)]
Sent = Annotated[Form, Depends(_form_of)]


class _Only(Having):
    """The API's guard, for pages: it gives the session."""

    async def __call__(self, request: Request) -> Session:  # type: ignore[override]  # no scheme in a page
        await self.admit(request)
        return _of_request(request)


Submitting = Annotated[Session, Depends(_Only(Role.SUBMIT))]
Reviewing = Annotated[Session, Depends(_Only(Role.REVIEW))]
Administering = Annotated[Session, Depends(_Only(Role.ADMIN))]
ReviewingOrAdmin = Annotated[Session, Depends(_Only(Role.REVIEW, Role.ADMIN))]
