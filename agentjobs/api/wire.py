"""The connection: uvicorn's protocol, with bounds where it has none, and with our form of a refusal.

It waits for the head of a request without end, takes a head of any size, and reads on for ever what a client sends
after its answer. Here a client that is not being answered has HEAD_SECONDS to send a whole head.
"""

import asyncio
import uuid
from http import HTTPStatus
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agentjobs.api import problems
from agentjobs.api.problems import Problem

log = structlog.get_logger()

HEAD_SECONDS: Final = 10.0
"""A head is one packet or two. (Between two requests uvicorn waits 5 s.)"""

HEAD_BYTES_LIMIT: Final = 64 * 1024
"""Beyond what came in one read with its first byte. It bounds memory; edge.py has the limits that callers meet."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = 0
        self._in_head = False
        self._is_deaf = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Its first head is awaited."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes, of a head or a body."""
        if self._is_deaf:
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES_LIMIT:
            self._refuse(_too_long() if not self.headers else _too_large())
        elif not self._is_answering():
            self._await_head()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._await_head()

    def on_headers_complete(self) -> None:
        """The head is here; what comes next is the application's to wait for."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, _: str) -> None:
        """What came is no HTTP."""
        detail = "This is not HTTP/1.1 as RFC 9112 has it, or its body is cut wrongly."
        self._refuse(Problem(400, "malformed_http", detail))

    def _refuse(self, problem: Problem) -> None:
        self._is_deaf = True
        self._stop_waiting()
        if self._is_answering() and (self.cycle.response_started or not self.cycle.more_body):
            # The answer before this one must not be mixed with it: that goes out, and then the connection ends.
            self.cycle.keep_alive = False
            return
        request_id = str(uuid.uuid4())
        log.info("request", request_id=request_id, method="other", route="unknown", status=problem.status_code)
        self.transport.write(_encoded(problem, request_id))
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        if self._patience is None and not self._is_deaf:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if self.transport.is_closing():
            return
        if self._is_answering():
            self._await_head()  # the next head came early, and is not read before the answer is out
        elif self._in_head:
            detail = f"The head of the request did not arrive within {HEAD_SECONDS:.0f} seconds: send it again."
            self._refuse(Problem(408, "head_too_slow", detail))
        else:
            self.transport.close()


def _too_large() -> Problem:
    return Problem(431, "headers_too_large", f"Send a head of at most {HEAD_BYTES_LIMIT} bytes.")


def _too_long() -> Problem:
    return Problem(414, "target_too_long", f"Send a head of at most {HEAD_BYTES_LIMIT} bytes.")


def _encoded(problem: Problem, request_id: str) -> bytes:
    answer = problems.answer(problem, request_id)
    answer.headers.update({"x-request-id": request_id, "cache-control": "no-store", "connection": "close"})
    status = HTTPStatus(problem.status_code)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(answer.body)])
