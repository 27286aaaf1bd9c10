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
    410: "It was erased on request.",
    413: "The body is too large.",
    414: "The path with its query is too long.",
    415: "The media type or encoding is not taken; Accept or Accept-Encoding says which is.",
    422: "A field or parameter cannot be taken; `errors` says which and what to do.",
    429: "More than the tenant or the user may have, or too many wrong keys: repeat later.",
    431: "Too many headers, or too large ones.",
    500: "A fault of ours.",
    503: "The database does not answer: repeat later.",
}
_HEADERS = {
    401: {"WWW-Authenticate": "How to authenticate."},
    429: {"Retry-After": "Seconds until another try is worth while."},
    503: {"Retry-After": "Seconds until another try is worth while."},
}
_ALWAYS = (400, 401, 403, 413, 414, 422, 429, 431, 500, 503)
_WITH_BODY = (408, 415)
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
    return {
        name: {"description": text, "required": True, "schema": {"type": "string"}} for name, text in told.items()
    }


def optional_headers(told: dict[str, str]) -> dict[str, Any]:
    """The same, of those that not every answer has."""
    return {name: header | {"required": False} for name, header in headers(told).items()}


def _declared(statuses: Iterable[int]) -> Responses:
    return {status: _one(status) for status in sorted(statuses)}


def _one(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _TOLD[status], "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
    return answer | {"headers": headers(_HEADERS[status])} if status in _HEADERS else answer
