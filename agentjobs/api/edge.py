"""The outermost layer: each request has an id, one log event, and an answer whatever happens inside."""

import time
import traceback
import uuid
from types import TracebackType

import structlog
from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentjobs.api import problems
from agentjobs.api.strict_json import BODY_LIMIT, too_large
from agentjobs.domain.failures import RetryableError
from agentjobs.ledger.database import is_unavailable

log = structlog.get_logger()

HEADER_COUNT_LIMIT = 100
HEADER_BYTES_LIMIT = 32 * 1024
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
INTERNAL_ERROR = 500


class Edge:
    """ASGI middleware. The log gets the route and never the path, the query, a header or a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        answer = _Answer(send)
        scope.setdefault("state", {})["request_id"] = answer.request_id
        try:
            await self._answered(scope, receive, answer)
        finally:
            _told(scope, answer, time.perf_counter() - began)

    async def _answered(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        request = Request(scope, receive)
        try:
            # Before anything is spent on the caller.
            _check_size(request)
            await self._app(scope, receive, answer.send)
        except Exception as error:
            if answer.status is not None:
                raise  # half an answer is out: only the end of the connection can tell the caller
            await problems.response(request, _problem_of(request, error))(scope, receive, answer.send)


class _Answer:
    """What goes out, marked with the request's id."""

    def __init__(self, send: Send) -> None:
        self.request_id = str(uuid.uuid4())
        self.status: int | None = None
        self._send = send

    async def send(self, message: Message) -> None:
        """Pass it on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _check_size(request: Request) -> None:
    sizes = [len(name) + len(value) for name, value in request.headers.raw]
    if len(sizes) > HEADER_COUNT_LIMIT or sum(sizes) > HEADER_BYTES_LIMIT:
        detail = f"Send at most {HEADER_COUNT_LIMIT} headers of {HEADER_BYTES_LIMIT} bytes together."
        raise problems.Problem(431, "headers_too_large", detail)
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 20 or int(length) > BODY_LIMIT:
        raise too_large()


def _problem_of(request: Request, error: Exception) -> problems.Problem:
    if isinstance(error, problems.Problem):
        return error
    if is_unavailable(error) or isinstance(error, RetryableError):
        log.warning("database_unavailable", error_type=type(error).__name__)
        return problems.unavailable(request)
    # An exception's text may quote a request: its type and place are enough.
    log.error("unforeseen_error", error_type=type(error).__name__, place=_place(error.__traceback__))
    return problems.bug()


def _place(trace: TracebackType | None) -> str:
    *_, last = traceback.extract_tb(trace)
    return f"{last.filename}:{last.lineno}"


def _told(scope: Scope, answer: _Answer, seconds: float) -> None:
    log.info(
        "request",
        request_id=answer.request_id,
        method=scope["method"] if scope["method"] in METHODS else "other",
        route=getattr(scope.get("route"), "path", "unknown"),
        status=answer.status or INTERNAL_ERROR,
        duration_ms=round(seconds * 1000, 1),
    )
