"""What the OpenAPI document says of errors, once for all routes."""

from collections.abc import Iterable
from typing import Any

from agentjobs.api.problems import MEDIA_TYPE, ProblemBody

_TOLD = {
    400: "The request is malformed.",
    401: "No valid API key.",
    403: "The key has not the role.",
    404: "Nothing of this id that the caller may see.",
    409: "Not possible in the present state.",
    413: "The body is too large.",
    415: "The media type or encoding is not taken.",
    422: "A field or parameter cannot be taken; `errors` says which and what to do.",
    503: "The database does not answer: repeat later.",
}
_ALWAYS = (401, 403, 422, 503)

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """These problems, and those that every route with a key may answer."""
    return _declared({*statuses, *_ALWAYS})


def only(*statuses: int) -> Responses:
    """Just these."""
    return _declared(statuses)


def _declared(statuses: Iterable[int]) -> Responses:
    return {
        status: {"description": _TOLD[status], "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
        for status in sorted(statuses)
    }


_REFERENCE = {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}
