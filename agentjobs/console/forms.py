"""Forms as browsers send them, read strictly. Parsed here, since the usual parser is made for uploads."""

import asyncio
import hmac
from datetime import UTC, datetime
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from agentjobs.api.problems import Problem
from agentjobs.console.sessions import Session

FORM_LIMIT: Final = 256 * 1024
FIELDS_LIMIT: Final = 100
FORM_SECONDS: Final = 30.0
PROOF_FIELD: Final = "form_token"
_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"

Body = TypeVar("Body", bound=BaseModel)


class Form:
    """The fields of a form, each given once. An empty field is one that was left out."""

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    def text(self, name: str) -> str | None:
        """What was written; None for nothing."""
        # Browsers send line ends as CR LF.
        return self._fields.get(name, "").replace("\r\n", "\n") or None

    def number(self, name: str) -> float | None:
        """A number. Raises Problem 422."""
        given = self.text(name)
        try:
            return None if given is None else float(given)
        except ValueError:
            raise Problem(422, "invalid_input", f"Give a number for {name.replace('_', ' ')}.") from None

    def whole(self, name: str) -> int | None:
        """A whole number. Raises Problem 422."""
        number = self.number(name)
        if number is not None and not number.is_integer():
            raise Problem(422, "invalid_input", f"Give a whole number for {name.replace('_', ' ')}.")
        return None if number is None else int(number)

    def moment(self, name: str) -> datetime | None:
        """A point in time, of UTC unless it says. Raises Problem 422."""
        given = self.text(name)
        try:
            moment = None if given is None else datetime.fromisoformat(given)
        except ValueError:
            raise Problem(422, "invalid_input", f"Give a date and a time for {name.replace('_', ' ')}.") from None
        return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)

    def several(self, name: str) -> list[str] | None:
        """What was written with spaces, commas or line ends between; None for nothing."""
        return (self.text(name) or "").replace(",", " ").split() or None

    def is_set(self, name: str) -> bool:
        """Whether a box is ticked."""
        return self.text(name) is not None


async def read_form(request: Request) -> Form:
    """The form that was sent from a page of ours. Raises Problem."""
    _check_origin(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != _MEDIA_TYPE:
        raise Problem(415, "unsupported_media_type", "Send the form from its page.")
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await _bounded(request)
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_LIMIT, errors="strict"
        )
    except TimeoutError:
        raise Problem(408, "body_too_slow", "The form did not arrive in time: send it again.") from None
    except ValueError:
        raise Problem(400, "malformed_form", "The form cannot be read: send it again from its page.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs) or any("\0" in value for value in fields.values()):
        raise Problem(400, "malformed_form", "The form cannot be read: send it again from its page.")
    return Form(fields)


def check_token(form: Form, session: Session) -> None:
    """Raise Problem 403 unless the form came from a page that this session was shown."""
    if not hmac.compare_digest((form.text(PROOF_FIELD) or "").encode(), session.form_token.encode()):
        raise Problem(
            403, "stale_form", "This form is of another session: go back, load the page anew and try again."
        )


def given(body: type[Body], values: dict[str, object]) -> Body:
    """The body of a request to the API, out of a form; None was left out. Raises RequestValidationError."""
    try:
        return body.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None


def is_by_https(request: Request) -> bool:
    """Whether the browser speaks TLS, perhaps to a proxy before us: its own word, and no header of a proxy."""
    return request.headers.get("origin", "").startswith("https://")


def _check_origin(request: Request) -> None:
    host = request.headers.get("host")
    if request.headers.get("origin") not in {f"http://{host}", f"https://{host}"}:
        raise Problem(403, "other_origin", "Send the form from its own page.")


async def _bounded(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > FORM_LIMIT:
            raise Problem(413, "payload_too_large", f"A form may have {FORM_LIMIT} bytes; send less.")
        parts.append(part)
    return b"".join(parts)
