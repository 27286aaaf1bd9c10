"""What the OpenAPI document says of errors, once for all routes."""

from collections.abc import Iterable
from typing import Any

from agentjobs.api.problems import MEDIA_TYPE, ProblemBody

_TOLD = {
    400: "The request is malformed.",
    401: "No valid API key.",
    403: "The key has not the role, or the request names another tenant.",
    404: "Nothing of this id that the caller may see.",
    408: "The body did not arrive in time.",
    409: "Not possible in the present state.",
    413: "The body is too large.",
    415: "The media type or encoding is not taken.",
    422: "A field or parameter cannot be taken; `errors` says which and what to do.",
    431: "Too many headers, or too large ones.",
    500: "A fault of ours.",
    503: "The database does not answer: repeat later.",
}
_HEADERS = {
    401: {"WWW-Authenticate": "How to authenticate."},
    503: {"Retry-After": "Seconds until another try is worth while."},
}
_ALWAYS = (401, 403, 413, 422, 431, 500, 503)
_WITH_BODY = (400, 408, 415)
_REFERENCE = {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """These problems, and those that every route with a key may answer."""
    return _declared({*statuses, *_ALWAYS})


def problems_with_body(*statuses: int) -> Responses:
    """The same for a route that takes a body."""
    return problems(*statuses, *_WITH_BODY)


def only(*statuses: int) -> Responses:
    """Just these."""
    return _declared(statuses)


def headers(told: dict[str, str]) -> dict[str, Any]:
    """Response headers with their descriptions."""
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in told.items()}


def _declared(statuses: Iterable[int]) -> Responses:
    return {status: _one(status) for status in sorted(statuses)}


def _one(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _TOLD[status], "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
    return answer | {"headers": headers(_HEADERS[status])} if status in _HEADERS else answer
