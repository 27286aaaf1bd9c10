"""Around all of the console: what its answers let a browser do, and a page also when something breaks."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentjobs.api.edge import problem_of
from agentjobs.console.answers import problem_page

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not `no-referrer`: with that a browser sends `Origin: null` with our own forms too, and they cannot be told
    # from those of others. No other host learns anything by this one either.
    "Referrer-Policy": "same-origin",
}


class Shell:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with the headers of every answer."""
        begun = False

        async def marked(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            await self._app(scope, receive, marked)
        except Exception as error:
            if begun:
                raise  # half a page is out
            request = Request(scope, receive)
            await problem_page(request, problem_of(request, error))(scope, receive, marked)
