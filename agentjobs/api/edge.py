"""The outermost layer: each request has an id, one log event, and an answer whatever happens inside."""

import re
import time
import traceback
import uuid
from collections.abc import Callable
from types import TracebackType

import structlog
from fastapi import Request
from opentelemetry.trace import Span
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentjobs.api import problems
from agentjobs.api.strict_json import BODY_LIMIT, too_large
from agentjobs.api.trace_context import answered, request_span
from agentjobs.domain.failures import RetryableError
from agentjobs.ledger.database import is_unavailable

log = structlog.get_logger()

HEADER_COUNT_LIMIT = 100
HEADER_BYTES_LIMIT = 32 * 1024
TARGET_BYTES_LIMIT = 8 * 1024
"""Of a path with its query. RFC 9112, section 3: at least 8,000."""

HOST = re.compile(rb"([A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")
"""RFC 3986, section 3.2.2, but for addresses of a future version."""

# Decoded, these would move the borders between a path's parts, or end it early for somebody else's reader.
HIDDEN_BORDER = re.compile(rb"%(2[Ff]|5[Cc]|[01][0-9A-Fa-f]|7[Ff])")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
INTERNAL_ERROR = 500


class Edge:
    """ASGI middleware. The log gets the route and never the path, the query, a header or a body."""

    def __init__(self, app: ASGIApp, measure: Callable[..., None]) -> None:
        self._app = app
        self._measure = measure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        answer = _Answer(send, bodiless=scope["method"] == "HEAD")
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        scope.setdefault("state", {})["request_id"] = answer.request_id
        with request_span(Request(scope), answer.request_id) as span:
            try:
                await self._answered(scope, receive, answer)
            finally:
                self._told(scope, answer, time.perf_counter() - began, span)

    async def _answered(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        request = Request(scope, receive)
        try:
            # Before anything is spent on the caller.
            _check_size(request)
            _check_host(request)
            _check_borders(request)
            await self._app(scope, receive, answer.send)
        except Exception as error:
            if answer.status is not None:
                raise  # half an answer is out: only the end of the connection can tell the caller
            await problems.response(request, problem_of(request, error))(scope, receive, answer.send)

    def _told(self, scope: Scope, answer: "_Answer", seconds: float, span: Span) -> None:
        method = "HEAD" if answer.bodiless else scope["method"] if scope["method"] in METHODS else "other"
        # A mounted application's routes begin where it is mounted.
        route = scope.get("root_path", "") + scope["route"].path if "route" in scope else "unknown"
        status = answer.status or INTERNAL_ERROR
        self._measure(method=method, route=route, status=status, seconds=seconds)
        answered(span, method=method, route=route, status=status)
        log.info(
            "request",
            request_id=answer.request_id,
            method=method,
            route=route,
            status=status,
            duration_ms=round(seconds * 1000, 1),
        )


class _Answer:
    """What goes out, marked with the request's id; of an answer to HEAD, all but the body (RFC 9110, 9.3.2)."""

    def __init__(self, send: Send, *, bodiless: bool) -> None:
        self.request_id = str(uuid.uuid4())
        self.status: int | None = None
        self.bodiless = bodiless
        self._ended = False
        self._send = send

    async def send(self, message: Message) -> None:
        """Pass it on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        elif self.bodiless:
            # At once: a stream would go on. The server then tells it that the client has left.
            message = {"type": "http.response.body", "body": b"", "more_body": False}
            if self._ended:
                return
            self._ended = True
        await self._send(message)


def _check_size(request: Request) -> None:
    sizes = [len(name) + len(value) for name, value in request.headers.raw]
    if len(sizes) > HEADER_COUNT_LIMIT or sum(sizes) > HEADER_BYTES_LIMIT:
        detail = f"Send at most {HEADER_COUNT_LIMIT} headers of {HEADER_BYTES_LIMIT} bytes together."
        raise problems.Problem(431, "headers_too_large", detail)
    target = (request.scope.get("raw_path") or b"") + request.scope["query_string"]
    if len(target) > TARGET_BYTES_LIMIT:
        detail = f"A path with its query may have {TARGET_BYTES_LIMIT} bytes; send less."
        raise problems.Problem(414, "target_too_long", detail)
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 20 or int(length) > BODY_LIMIT:
        raise too_large()


def _check_host(request: Request) -> None:
    # RFC 9112, section 3.2: whoever reads another Host than we do might let another request through.
    hosts = [value for name, value in request.headers.raw if name == b"host"]
    is_old = request.scope["http_version"] == "1.0"
    if not (is_old and not hosts) and (len(hosts) != 1 or not HOST.fullmatch(hosts[0])):
        raise problems.Problem(400, "bad_host", "Send one Host header with the name of this server.")


def _check_borders(request: Request) -> None:
    if HIDDEN_BORDER.search(request.scope.get("raw_path") or b""):
        raise problems.not_found()


def problem_of(request: Request, error: Exception) -> problems.Problem:
    """What the caller is told of an error that nobody caught; the log is told of it here."""
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
