"""From the facts of a failure that came from outside to its category: one table for each kind of fact.

An edge gathers the facts of an exception that it did not raise itself; the classification sees only them, so that
every row can be tested without a network, a database or a provider.
"""

from typing import Final

from agentjobs.domain.failures import Category
from agentjobs.domain.job import Frozen


class Facts(Frozen):
    """What an edge knows of an exception it did not raise itself: the classification sees only this."""

    provider_error: str | None = None
    """The code or type that a model provider gave, in lower case; it says more than the status beside it."""

    http_status: int | None = None
    sqlstate: str | None = None
    timed_out: bool = False
    connection_lost: bool = False
    invalid: bool = False


# Error codes and types of model providers (OpenAI: "Error codes"; Anthropic: "Errors"; Google: google.rpc.Code;
# llama.cpp's server). What is not here is classified by its status.
_BY_PROVIDER_ERROR: Final = {
    "rate_limit_error": Category.RATE_LIMITED,
    "rate_limit_exceeded": Category.RATE_LIMITED,
    "rate_limited": Category.RATE_LIMITED,
    "resource_exhausted": Category.RATE_LIMITED,
    "too_many_requests": Category.RATE_LIMITED,
    "insufficient_quota": Category.ACCESS_DENIED,  # a 429 that no wait mends: somebody has to pay
    "billing_error": Category.ACCESS_DENIED,
    "billing_hard_limit_reached": Category.ACCESS_DENIED,
    "credit_balance_exhausted": Category.ACCESS_DENIED,
    "exceeded_current_quota_error": Category.ACCESS_DENIED,
    "organization_spend_limit_exceeded": Category.ACCESS_DENIED,
    "organization_usage_limit_exceeded": Category.ACCESS_DENIED,
    "project_spend_limit_exceeded": Category.ACCESS_DENIED,
    "authentication_error": Category.ACCESS_DENIED,
    "permission_error": Category.ACCESS_DENIED,
    "permission_denied": Category.ACCESS_DENIED,
    "invalid_api_key": Category.ACCESS_DENIED,
    "unauthenticated": Category.ACCESS_DENIED,
    "overloaded_error": Category.UNAVAILABLE,
    "overloaded": Category.UNAVAILABLE,
    "server_error": Category.UNAVAILABLE,
    "internal_server_error": Category.UNAVAILABLE,
    "api_error": Category.UNAVAILABLE,
    "unavailable": Category.UNAVAILABLE,
    "service_unavailable": Category.UNAVAILABLE,
    "service_unavailable_error": Category.UNAVAILABLE,
    "server_is_overloaded": Category.UNAVAILABLE,
    "unavailable_error": Category.UNAVAILABLE,  # llama.cpp, while it loads its model
    "timeout_error": Category.TIMEOUT,
    "deadline_exceeded": Category.TIMEOUT,  # the provider's own deadline, not the job's
    "model_not_found": Category.NOT_FOUND,
    "deployment_not_found": Category.NOT_FOUND,
    "not_found_error": Category.NOT_FOUND,
    "context_length_exceeded": Category.PAYLOAD_TOO_LARGE,
    "exceed_context_size_error": Category.PAYLOAD_TOO_LARGE,  # llama.cpp
    "string_above_max_length": Category.PAYLOAD_TOO_LARGE,
    "request_too_large": Category.PAYLOAD_TOO_LARGE,
    "content_filter": Category.CONTENT_REFUSED,
    "content_policy_violation": Category.CONTENT_REFUSED,
    "moderation_blocked": Category.CONTENT_REFUSED,
    "refusal": Category.CONTENT_REFUSED,
    "safety": Category.CONTENT_REFUSED,
    "invalid_prompt": Category.CONTENT_REFUSED,  # OpenAI: the prompt was flagged
    "invalid_request_error": Category.INVALID_INPUT,
    "invalid_argument": Category.INVALID_INPUT,
}

# Status codes whose meaning differs from their class. Unknown 5xx is retryable, unknown 4xx is not.
_BY_HTTP_STATUS: Final = {
    400: Category.INVALID_INPUT,
    401: Category.ACCESS_DENIED,
    402: Category.ACCESS_DENIED,  # somebody has to pay
    403: Category.ACCESS_DENIED,
    404: Category.NOT_FOUND,
    408: Category.TIMEOUT,
    409: Category.UNAVAILABLE,  # a conflicting request is in flight at the destination: later it is not
    410: Category.NOT_FOUND,
    413: Category.PAYLOAD_TOO_LARGE,
    422: Category.INVALID_INPUT,
    425: Category.UNAVAILABLE,
    429: Category.RATE_LIMITED,
    451: Category.CONTENT_REFUSED,
    501: Category.INVALID_INPUT,
    504: Category.TIMEOUT,
}

# SQLSTATE classes (PostgreSQL manual, appendix A) in which the same statement may succeed later.
_RETRYABLE_SQLSTATE_CLASSES: Final = {
    "08": Category.UNAVAILABLE,  # connection exception
    "25": Category.UNAVAILABLE,  # read-only or aborted transaction: a failover in progress
    "40": Category.UNAVAILABLE,  # serialization failure, deadlock
    "53": Category.UNAVAILABLE,  # disk full, out of memory, too many connections
    "55": Category.UNAVAILABLE,  # lock not available
    "57": Category.UNAVAILABLE,  # shutdown, crash shutdown, cannot connect now
    "58": Category.UNAVAILABLE,  # system error outside PostgreSQL
}
_PERMANENT_SQLSTATE_CLASSES: Final = {
    "22": Category.INVALID_INPUT,  # data exception
    "28": Category.ACCESS_DENIED,  # invalid authorization
}


def classify(facts: Facts) -> Category:
    """The category of a failure that came from outside. Nothing known means a bug of ours."""
    if facts.provider_error in _BY_PROVIDER_ERROR and not _is_vague(facts):
        return _BY_PROVIDER_ERROR[facts.provider_error]
    if facts.timed_out:
        return Category.TIMEOUT
    if facts.connection_lost:
        return Category.UNAVAILABLE
    if facts.http_status is not None:
        return _of_http_status(facts.http_status)
    if facts.sqlstate is not None:
        return _of_sqlstate(facts.sqlstate)
    return Category.BAD_OUTPUT if facts.invalid else Category.BUG


def _is_vague(facts: Facts) -> bool:
    # "invalid_request_error" is also what OpenAI calls a 401 or a 404: then the status says more.
    return facts.provider_error == "invalid_request_error" and facts.http_status not in {None, 400, 422}


def _of_http_status(status: int) -> Category:
    if status in _BY_HTTP_STATUS:
        return _BY_HTTP_STATUS[status]
    return Category.UNAVAILABLE if status >= 500 else Category.INVALID_INPUT


def _of_sqlstate(sqlstate: str) -> Category:
    if sqlstate == "57014":  # query_canceled: our own statement timeout
        return Category.TIMEOUT
    of_class = sqlstate[:2]
    return _RETRYABLE_SQLSTATE_CLASSES.get(of_class) or _PERMANENT_SQLSTATE_CLASSES.get(of_class, Category.BUG)
