"""Reading a request body strictly: bounded, and only what every JSON reader understands in the same way.

Refused: more than BODY_LIMIT bytes, other media types and encodings, NaN and infinities, duplicate names, deep
nesting, integers beyond 2**53, NUL and lone surrogates (RFC 8259, sections 4, 6 and 8; RFC 7493, I-JSON).
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute

from agentjobs.api.problems import Problem
from agentjobs.domain.failures import PermanentError
from agentjobs.domain.values import checked

BODY_LIMIT = 256 * 1024
MEMBER_LIMIT = 1_000
"""Names in one object: no request of ours has twenty."""


class StrictRequest(Request):
    """A request whose body is JSON in the strict sense."""

    async def body(self) -> bytes:
        """The body, counted while it arrives: a length that is not announced is no way around the limit."""
        if not hasattr(self, "_body"):
            _check_headers(self)
            self._body = await self._bounded()
        return self._body

    async def json(self) -> Any:
        """The value of the body."""
        return parse(await self.body())

    async def _bounded(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in self.stream():
            size += len(part)
            if size > BODY_LIMIT:
                raise too_large()
            parts.append(part)
        return b"".join(parts)


class StrictRoute(APIRoute):
    """A route that reads its body strictly, and before anything else is done for the caller."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler over the strict request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


def too_large() -> Problem:
    """The body is beyond the limit."""
    return Problem(413, "payload_too_large", f"A request body may have {BODY_LIMIT} bytes; send less.")


def parse(body: bytes) -> Any:
    """The JSON value. Raises Problem: 400 for what is no JSON, 422 for what cannot be taken."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise Problem(400, "malformed_json", "The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        detail = f"The body is no JSON (line {error.lineno}, column {error.colno})."
        raise Problem(400, "malformed_json", detail) from None
    except RecursionError:
        raise _refused("the body is nested too deeply") from None
    except ValueError:  # an integer of thousands of digits
        raise _refused("a number is too long") from None
    try:
        return checked(value, limit_bytes=BODY_LIMIT)
    except PermanentError as error:
        raise _refused(str(error)) from None


def _check_headers(request: Request) -> None:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_LIMIT:
        raise too_large()
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "unsupported_encoding", "Send the body without Content-Encoding.")
    media_type = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if media_type != "application/json" and length != "0":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")


def _refused(why: str) -> Problem:
    return Problem(422, "invalid_input", f"The body cannot be taken: {why}.")


def _no_constant(_: str) -> NoReturn:
    raise _refused("NaN and infinities are no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MEMBER_LIMIT:
        raise _refused(f"an object has more than {MEMBER_LIMIT} names")
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _refused("a name stands twice in one object")
    return members
