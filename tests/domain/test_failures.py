"""Failures, sorted once."""

import re

import pytest

from agentjobs.domain import classification
from agentjobs.domain.budget import Usage
from agentjobs.domain.classification import Facts, classify
from agentjobs.domain.failures import (
    RETRYABLE,
    Category,
    JobError,
    KeyConflict,
    MalformedReply,
    PermanentError,
    RetryableError,
    failure,
)

C = Category
HTTP = {
    400: C.INVALID_INPUT,
    401: C.ACCESS_DENIED,
    402: C.ACCESS_DENIED,
    403: C.ACCESS_DENIED,
    404: C.NOT_FOUND,
    408: C.TIMEOUT,
    409: C.UNAVAILABLE,
    410: C.NOT_FOUND,
    413: C.PAYLOAD_TOO_LARGE,
    422: C.INVALID_INPUT,
    425: C.UNAVAILABLE,
    429: C.RATE_LIMITED,
    451: C.CONTENT_REFUSED,
    500: C.UNAVAILABLE,
    501: C.INVALID_INPUT,
    502: C.UNAVAILABLE,
    503: C.UNAVAILABLE,
    504: C.TIMEOUT,
    529: C.UNAVAILABLE,  # "overloaded" at some providers
}
SQLSTATES = {
    "08006": C.UNAVAILABLE,  # connection failure
    "25006": C.UNAVAILABLE,  # read-only transaction
    "40001": C.UNAVAILABLE,  # serialization failure
    "40P01": C.UNAVAILABLE,  # deadlock
    "53300": C.UNAVAILABLE,  # too many connections
    "55P03": C.UNAVAILABLE,  # lock not available
    "57P01": C.UNAVAILABLE,  # admin shutdown
    "58030": C.UNAVAILABLE,  # I/O error
    "57014": C.TIMEOUT,  # query cancelled
    "22021": C.INVALID_INPUT,  # a character the encoding lacks
    "28P01": C.ACCESS_DENIED,  # invalid password
    "23505": C.BUG,  # unique violation: the statement should have foreseen it
    "42P01": C.BUG,  # undefined table
    "XX000": C.BUG,  # internal error
}
PROVIDER_ERRORS = {
    "rate_limit_error": C.RATE_LIMITED,
    "rate_limit_exceeded": C.RATE_LIMITED,
    "rate_limited": C.RATE_LIMITED,
    "resource_exhausted": C.RATE_LIMITED,
    "too_many_requests": C.RATE_LIMITED,
    "credit_balance_exhausted": C.ACCESS_DENIED,
    "exceeded_current_quota_error": C.ACCESS_DENIED,
    "organization_spend_limit_exceeded": C.ACCESS_DENIED,
    "organization_usage_limit_exceeded": C.ACCESS_DENIED,
    "project_spend_limit_exceeded": C.ACCESS_DENIED,
    "service_unavailable": C.UNAVAILABLE,
    "service_unavailable_error": C.UNAVAILABLE,
    "server_is_overloaded": C.UNAVAILABLE,
    "insufficient_quota": C.ACCESS_DENIED,
    "billing_error": C.ACCESS_DENIED,
    "billing_hard_limit_reached": C.ACCESS_DENIED,
    "authentication_error": C.ACCESS_DENIED,
    "permission_error": C.ACCESS_DENIED,
    "permission_denied": C.ACCESS_DENIED,
    "invalid_api_key": C.ACCESS_DENIED,
    "unauthenticated": C.ACCESS_DENIED,
    "overloaded_error": C.UNAVAILABLE,
    "overloaded": C.UNAVAILABLE,
    "server_error": C.UNAVAILABLE,
    "internal_server_error": C.UNAVAILABLE,
    "api_error": C.UNAVAILABLE,
    "unavailable": C.UNAVAILABLE,
    "unavailable_error": C.UNAVAILABLE,
    "timeout_error": C.TIMEOUT,
    "deadline_exceeded": C.TIMEOUT,
    "model_not_found": C.NOT_FOUND,
    "deployment_not_found": C.NOT_FOUND,
    "not_found_error": C.NOT_FOUND,
    "context_length_exceeded": C.PAYLOAD_TOO_LARGE,
    "exceed_context_size_error": C.PAYLOAD_TOO_LARGE,
    "string_above_max_length": C.PAYLOAD_TOO_LARGE,
    "request_too_large": C.PAYLOAD_TOO_LARGE,
    "content_filter": C.CONTENT_REFUSED,
    "content_policy_violation": C.CONTENT_REFUSED,
    "moderation_blocked": C.CONTENT_REFUSED,
    "refusal": C.CONTENT_REFUSED,
    "safety": C.CONTENT_REFUSED,
    "invalid_prompt": C.CONTENT_REFUSED,
    "invalid_request_error": C.INVALID_INPUT,
    "invalid_argument": C.INVALID_INPUT,
}
OTHERS = [
    (Facts(timed_out=True), C.TIMEOUT),
    (Facts(connection_lost=True), C.UNAVAILABLE),
    (Facts(invalid=True), C.BAD_OUTPUT),
    (Facts(), C.BUG),
]


@pytest.mark.parametrize(("status", "category"), HTTP.items())
def test_an_http_status_has_its_category(status: int, category: Category) -> None:
    assert classify(Facts(http_status=status)) is category


@pytest.mark.parametrize("status", sorted(set(range(500, 600)) - set(HTTP)))
def test_an_unknown_5xx_is_retryable(status: int) -> None:
    assert classify(Facts(http_status=status)) in RETRYABLE


@pytest.mark.parametrize("status", sorted(set(range(400, 500)) - set(HTTP)))
def test_an_unknown_4xx_is_not(status: int) -> None:
    assert classify(Facts(http_status=status)) not in RETRYABLE


@pytest.mark.parametrize(("sqlstate", "category"), SQLSTATES.items())
def test_an_sqlstate_has_its_category(sqlstate: str, category: Category) -> None:
    assert classify(Facts(sqlstate=sqlstate)) is category


@pytest.mark.parametrize(("facts", "category"), OTHERS)
def test_what_has_no_code_is_told_by_what_is_known(facts: Facts, category: Category) -> None:
    assert classify(facts) is category


def test_a_call_that_was_cut_off_is_judged_by_that_and_not_by_its_status() -> None:
    assert classify(Facts(http_status=404, timed_out=True)) is C.TIMEOUT
    assert classify(Facts(http_status=404, connection_lost=True)) is C.UNAVAILABLE


def test_exactly_three_categories_are_retryable() -> None:
    assert {C.UNAVAILABLE, C.TIMEOUT, C.RATE_LIMITED} == RETRYABLE


def test_the_codes_of_the_contract_stay_what_they_are() -> None:
    assert " ".join(Category) == (
        "unavailable timeout rate_limited invalid_input access_denied not_found content_refused unknown_tool "
        "key_conflict bad_output payload_too_large budget_exceeded deadline_exceeded retries_exhausted "
        "outcome_unknown compensation_failed workflow_stuck terminated bug"
    )


@pytest.mark.parametrize("category", Category)
def test_an_error_cannot_say_retry_of_what_no_retry_helps_nor_the_other_way_round(category: Category) -> None:
    wrong, right = (PermanentError, RetryableError) if category in RETRYABLE else (RetryableError, PermanentError)

    with pytest.raises(ValueError, match=category):
        wrong(category, "x")

    assert isinstance(right(category, "x"), JobError)


def test_a_key_conflict_is_permanent_and_shows_the_beginnings_of_both_fingerprints_only() -> None:
    error = KeyConflict(recorded="a" * 64, given="b" * 64)

    assert (error.category, isinstance(error, PermanentError)) == (C.KEY_CONFLICT, True)
    assert re.findall(r"a{2,}|b{2,}", str(error)) == ["a" * 16, "b" * 16]


def test_a_failures_reason_is_its_category_unless_told_otherwise() -> None:
    plain = failure(C.UNAVAILABLE, "away", "plan")
    exhausted = failure(C.UNAVAILABLE, "away", "plan", reason=C.RETRIES_EXHAUSTED)

    assert (plain.category, plain.reason) == (C.UNAVAILABLE, C.UNAVAILABLE)
    assert (exhausted.category, exhausted.reason) == (C.UNAVAILABLE, C.RETRIES_EXHAUSTED)


def test_a_failures_message_is_made_safe() -> None:
    assert failure(C.BUG, "Bearer abcdef\n" + "x" * 9000).message.startswith("Bearer *** xxx")


@pytest.mark.parametrize(("code", "category"), PROVIDER_ERRORS.items())
def test_a_providers_own_error_code_says_more_than_its_status(code: str, category: Category) -> None:
    assert classify(Facts(provider_error=code, http_status=400)) is category


@pytest.mark.parametrize(
    ("code", "status", "category"),
    [
        ("insufficient_quota", 429, C.ACCESS_DENIED),  # no wait mends it
        ("invalid_request_error", 401, C.ACCESS_DENIED),  # a type that some providers give to every 4xx
        ("invalid_request_error", 404, C.NOT_FOUND),
        ("invalid_request_error", 429, C.RATE_LIMITED),
        ("never_heard_of", 429, C.RATE_LIMITED),
        ("never_heard_of", 599, C.UNAVAILABLE),
        ("never_heard_of", 418, C.INVALID_INPUT),
        ("overloaded_error", 529, C.UNAVAILABLE),
        ("overloaded_error", None, C.UNAVAILABLE),  # in the middle of a stream there is no status
    ],
)
def test_code_and_status_together(code: str, status: int | None, category: Category) -> None:
    assert classify(Facts(provider_error=code, http_status=status)) is category


def test_every_code_of_the_table_has_a_row_here() -> None:
    assert set(classification._BY_PROVIDER_ERROR) == set(PROVIDER_ERRORS)


def test_a_malformed_reply_says_what_it_cost() -> None:
    error = MalformedReply("subject: missing", paid=Usage(tokens_in=3))

    assert (error.category, error.paid) == (C.BAD_OUTPUT, Usage(tokens_in=3))
