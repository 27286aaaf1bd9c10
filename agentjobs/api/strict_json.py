"""Reading a request body strictly: bounded, and only what every JSON reader understands in the same way.

Refused: more than BODY_LIMIT bytes, other media types and encodings, NaN and infinities, duplicate names, deep
nesting, integers beyond 2**53, NUL and lone surrogates (RFC 8259, sections 4, 6 and 8; RFC 7493, I-JSON).
"""

import asyncio
import json
from email.message import Message
from typing import Any, NoReturn

from fastapi import Request
from starlette.requests import ClientDisconnect

from agentjobs.api.problems import Problem
from agentjobs.domain.failures import PermanentError
from agentjobs.domain.values import checked

BODY_LIMIT = 256 * 1024
MEMBER_LIMIT = 1_000
"""Names in one object: no request of ours has twenty."""

BODY_SECONDS = 30.0
"""For the whole body, so that a caller who sends a byte now and then holds nothing for long."""


class StrictRequest(Request):
    """A request whose body is JSON in the strict sense."""

    async def body(self) -> bytes:
        """The body, counted while it arrives: a length that is not announced is no way around the limit."""
        if not hasattr(self, "_body"):
            _check_headers(self)
            self._body = await self._in_time()
        return self._body

    async def json(self) -> Any:
        """The value of the body."""
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json

    async def _in_time(self) -> bytes:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._bounded()
        except TimeoutError:
            detail = f"The body did not arrive within {BODY_SECONDS:.0f} seconds: send the request again."
            raise Problem(408, "body_too_slow", detail, headers={"Connection": "close"}) from None
        except ClientDisconnect:
            raise Problem(400, "incomplete_body", "The connection ended before the body did.") from None

    async def _bounded(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in self.stream():
            size += len(part)
            if size > BODY_LIMIT:
                raise too_large()
            parts.append(part)
        return b"".join(parts)


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
    if request.headers.getlist("content-encoding"):
        detail = "Send the body without Content-Encoding."
        raise Problem(415, "unsupported_encoding", detail, headers={"Accept-Encoding": "identity"})
    given = request.headers.getlist("content-type")
    if len(given) != 1 or not _is_json(given[0]):
        detail = "Send the body as Content-Type: application/json, in UTF-8."
        raise Problem(415, "unsupported_media_type", detail, headers={"Accept": "application/json"})


def _is_json(content_type: str) -> bool:
    if content_type == "application/json":
        return True  # as nearly everybody has it; the parser of mail headers is slow
    header = Message()
    header["content-type"] = content_type
    charset = header.get_param("charset", "utf-8")
    return header.get_content_type() == "application/json" and str(charset).lower() == "utf-8"


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
