"""An answer that is no success, turned into one line that says what to do."""

from datetime import datetime
from http import HTTPStatus
from typing import Final

import httpx

from agentjobs.commands.errors import ApiRefused, ApiUnavailable, CommandError, NotOurApi, OverQuota
from agentjobs.commands.patience import asked_seconds
from agentjobs.commands.words import one_line, shortened

WORDS_LIMIT: Final = 600
UNAVAILABLE: Final = frozenset({502, 503, 504})

ADVICE: Final = {
    401: "set AGENTJOBS_API_KEY to a valid key; after `dev` has made a new home, its stack.json has one",
    403: "the commands for jobs use AGENTJOBS_API_KEY; dead, redrives, approvals, audit, budget set, quota set, "
    "keys, grants, webhooks and erase use AGENTJOBS_ADMIN_KEY",
    404: "check the id; the `list` commands show those there are",
    409: "look how it stands now, then decide again",
    410: "there is nothing to be done about it",
    422: "correct it and repeat",
    429: "repeat it later",
    500: "this is a fault of the API; its log says more",
}


def error_of(response: httpx.Response, url: str, now: datetime) -> CommandError:
    """What a status of 300 and above means for the user of a command."""
    status = response.status_code
    problem = _problem(response)
    asked = asked_seconds(response.headers.get("Retry-After"), now)
    if status in UNAVAILABLE:
        return ApiUnavailable(f"the API at {url} cannot serve now: {_words(problem, status)}", asked)
    if problem is None or status < 400:
        return not_our_api(response, url)
    message = "; ".join(filter(None, (_words(problem, status), _errors(problem), ADVICE.get(status))))
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return OverQuota(message, status, asked)
    return ApiRefused(message, status, asked)


def not_our_api(response: httpx.Response, url: str) -> NotOurApi:
    """Something else listens there, or an API of another version."""
    kind = one_line(response.headers.get("Content-Type", "no content type"))
    return NotOurApi(
        f"what answers at {url} is not this API (HTTP {response.status_code}, {shortened(kind, 60)}): "
        "check AGENTJOBS_API"
    )


def _problem(response: httpx.Response) -> dict[str, object] | None:
    try:
        document = response.json()
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _words(problem: dict[str, object] | None, status: int) -> str:
    problem = problem or {}
    told = [str(problem[name]) for name in ("title", "detail") if problem.get(name)]
    return f"{shortened(one_line(': '.join(told)) or 'no reason given', WORDS_LIMIT)} (HTTP {status})"


def _errors(problem: dict[str, object]) -> str:
    """The `errors` member, where a problem lists what is wrong with which field."""
    errors = problem.get("errors")
    if not isinstance(errors, list):
        return ""
    told = "; ".join(_field_error(error) for error in errors[:5])
    return shortened(one_line(told), WORDS_LIMIT)


def _field_error(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    where = error.get("pointer") or error.get("loc") or error.get("field")
    if isinstance(where, list):
        where = ".".join(str(part) for part in where)
    what = error.get("detail") or error.get("msg") or error.get("message") or "not valid"
    return f"{where}: {what}" if where else str(what)
