"""From an exception of pydantic-ai, or of what lies below it, to a failure of ours.

The facts are gathered here and sorted by `classify`. No text of the other side gets into a message: an error body
may quote the prompt. Its code is shown only where the classification knows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import httpx
import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from agentjobs.domain.budget import Usage
from agentjobs.domain.classification import Facts, classify
from agentjobs.domain.failures import RETRYABLE, Category, JobError, MalformedReply, PermanentError, RetryableError
from agentjobs.domain.retry_after import asked_seconds

_LOST: Final = (ModelConnectionError, httpx2.TransportError, httpx.TransportError)
_TIMED_OUT: Final = (
    TimeoutError,
    ModelTimeoutError,
    ModelRequestTimeout,
    httpx2.TimeoutException,
    httpx.TimeoutException,
)
_NOTHING_SENT: Final = tuple(
    kind
    for library in (httpx2, httpx)
    for kind in (library.ConnectError, library.ConnectTimeout, library.PoolTimeout, library.UnsupportedProtocol)
)
_UNREADABLE: Final = (json.JSONDecodeError, UnicodeDecodeError)

# What a library stumbles over in an envelope that is JSON, but has not the provider's shape.
_WRONG_SHAPE: Final = (UnexpectedModelBehavior, LookupError, AttributeError, TypeError, ValueError)

_ADVICE: Final = {
    Category.ACCESS_DENIED: "check the key, what it may use, and the account's credit",
    Category.NOT_FOUND: "check AGENTJOBS_MODEL and the provider's address",
    Category.PAYLOAD_TOO_LARGE: "the request is too long for this model",
    Category.CONTENT_REFUSED: "change the request, or the model",
}


@contextmanager
def translated(name: str, lost: Usage) -> Iterator[None]:
    """Around calls of the library only. `lost` is what a reply that cannot be read is taken to have cost.

    Raises RetryableError, MalformedReply or PermanentError; lets through what nobody foresaw.
    """
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        if (known := failure_of(error, name, lost)) is None:
            raise
        raise known from None


def failure_of(error: Exception, name: str, lost: Usage) -> JobError | None:
    """The failure that an exception means; None for one that nobody foresaw."""
    if isinstance(error, UserError):  # pydantic-ai refuses before it sends
        message = f"{name} cannot be asked this way: choose another model"
        return PermanentError(Category.INVALID_INPUT, message, nothing_happened=True)
    if _is_unreadable(error):
        message = f"{name} answered with no reply that can be read"
        return RetryableError(Category.UNAVAILABLE, message, paid=lost)
    if isinstance(error, ModelAPIError):
        return _of_provider(error, name)
    if isinstance(error, (*_LOST, *_TIMED_OUT)):
        return _sorted(_facts(error), f"the exchange with {name} broke off", nothing_happened=_unsent(error))
    if isinstance(error, _WRONG_SHAPE):
        return MalformedReply("the reply has not the form of a model's reply", paid=lost)
    return None


_TURNED_AWAY: Final = frozenset({503, 529})
"""Unavailable, overloaded: said instead of an answer, before a model has written anything. (Behind a 500, 502 or
504 one may have.)
"""


def _of_provider(error: ModelAPIError, name: str) -> JobError:
    facts = _facts(error)
    status = facts.http_status
    refused = status is not None and (400 <= status < 500 or status in _TURNED_AWAY) and not error.in_stream
    return _sorted(
        facts,
        _message(error, facts, name),
        nothing_happened=refused or _unsent(error),
        retry_after_seconds=_asked(error),
    )


def _sorted(
    facts: Facts, message: str, *, nothing_happened: bool, retry_after_seconds: float | None = None
) -> JobError:
    category = classify(facts)
    if category in RETRYABLE:
        return RetryableError(
            category, message, retry_after_seconds=retry_after_seconds, nothing_happened=nothing_happened
        )
    advice = _ADVICE.get(category)
    return PermanentError(
        category, f"{message}: {advice}" if advice else message, nothing_happened=nothing_happened
    )


def _facts(error: Exception) -> Facts:
    timed_out = isinstance(error, _TIMED_OUT)
    return Facts(
        provider_error=_code(error) if isinstance(error, ModelAPIError) else None,
        http_status=_status(error),
        timed_out=timed_out,
        # An error inside a stream that has no status and no code that is known: the stream broke, is what we know.
        connection_lost=not timed_out and _status(error) is None,
    )


def _status(error: BaseException) -> int | None:
    if isinstance(error, ModelHTTPError):
        return error.status_code
    response = getattr(error.__cause__, "response", None)  # a redirect: no error of its own in pydantic-ai
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) and status >= 300 else None


def _code(error: ModelAPIError) -> str | None:
    """The code, or else the type, that the classification knows: what is not in its table says nothing."""
    # pydantic-ai knows these by the message as well, where a server gives no code (vLLM, Anthropic).
    if isinstance(error, ModelQuotaExceededError):
        return "insufficient_quota"
    if isinstance(error, ModelContextWindowExceededError):
        return "context_length_exceeded"
    given = (error.provider_error_code, error.provider_error_type)
    return next((code.lower() for code in given if isinstance(code, str) and _is_known(code.lower())), None)


def _is_known(code: str) -> bool:
    return classify(Facts(provider_error=code)) is not Category.BUG


def _asked(error: ModelAPIError) -> float | None:
    headers = error.headers if isinstance(error, ModelHTTPError) else None
    asked = asked_seconds(headers, datetime.now(UTC)) if headers else None
    return error.retry_after if asked is None else asked  # Google says it in the body


def _message(error: ModelAPIError, facts: Facts, name: str) -> str:
    code = f" ({facts.provider_error})" if facts.provider_error else ""
    if error.in_stream:
        return f"{name} broke off its reply{code}"
    if facts.http_status is not None:
        return f"{name} answered HTTP {facts.http_status}{code}"
    if facts.timed_out:
        return f"{name} did not answer in time"
    if isinstance(error, ModelConnectionError):
        return f"{name} could not be reached" if _unsent(error) else f"the exchange with {name} broke off"
    return f"{name} reported a failure{code}"


def _is_unreadable(error: Exception) -> bool:
    # No JSON (a gateway's page of HTML, garbage in a stream), or no event at all. The library has no class of its
    # own for these: they are known by their cause, or by having none.
    if isinstance(error, UnexpectedModelBehavior):
        return error.__cause__ is None
    if type(error) is not ModelAPIError or error.in_stream or error.provider_error_code is not None:
        return False
    return error.__cause__ is None or isinstance(error.__cause__, _UNREADABLE)


def _unsent(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, _NOTHING_SENT):
            return True
        error = error.__cause__
    return False
