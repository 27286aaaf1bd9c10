"""Failures, sorted once: what happened, whether another attempt can help, and what to tell the owner.

    JobError                     a failure with a category
    +-- RetryableError           another attempt may succeed
    |   +-- HeldBack             the model was not asked: its limits, or its provider's trouble (admission.py)
    +-- MalformedReply           a model's reply is of no use: it is asked again, a bounded number of times
    +-- PermanentError           it will not: the job goes to the dead state
        +-- KeyConflict          the step key was used with other arguments

The categories are stable and part of the contract: they stand in the status, in the dead letter and in
Temporal as the type of the ApplicationError.
"""

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from agentjobs.domain.budget import Usage
from agentjobs.domain.job import Frozen


class Category(StrEnum):
    """Why an attempt failed. docs/failures.md says what each means for the owner and for the reviewer."""

    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    INVALID_INPUT = "invalid_input"
    ACCESS_DENIED = "access_denied"
    NOT_FOUND = "not_found"
    CONTENT_REFUSED = "content_refused"
    UNKNOWN_TOOL = "unknown_tool"
    KEY_CONFLICT = "key_conflict"
    BAD_OUTPUT = "bad_output"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    BUDGET_EXCEEDED = "budget_exceeded"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    RETRIES_EXHAUSTED = "retries_exhausted"
    OUTCOME_UNKNOWN = "outcome_unknown"
    COMPENSATION_FAILED = "compensation_failed"
    WORKFLOW_STUCK = "workflow_stuck"
    TERMINATED = "terminated"
    BUG = "bug"


RETRYABLE: Final = frozenset({Category.UNAVAILABLE, Category.TIMEOUT, Category.RATE_LIMITED})

MESSAGE_LIMIT: Final = 500
"""Characters of a failure message: it lands in history, ledger and status, and Temporal truncates at 4 KiB."""


class JobError(Exception):
    """A failure with a category. The message must be safe to show: no user content, no secret.

    `nothing_happened` says that the call certainly had no effect and no cost, so that no doubt is left for a later
    attempt. `paid` is what the failed call cost, where that is known.
    """

    def __init__(
        self, category: Category, message: str, *, nothing_happened: bool = False, paid: Usage | None = None
    ) -> None:
        super().__init__(message)
        self.category = category
        self.nothing_happened = nothing_happened
        self.paid = paid


class RetryableError(JobError):
    """Another attempt may succeed; `retry_after_seconds` is what the other side asked for, if it did."""

    has_own_place = False
    """Whether `retry_after_seconds` is a moment of this attempt alone, so that nothing need be spread out."""

    def __init__(
        self,
        category: Category,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        nothing_happened: bool = False,
        paid: Usage | None = None,
    ) -> None:
        if category not in RETRYABLE:
            raise ValueError(f"{category} is permanent: raise PermanentError")
        super().__init__(category, message, nothing_happened=nothing_happened, paid=paid)
        self.retry_after_seconds = retry_after_seconds


class MalformedReply(JobError):
    """A model's reply does not have its declared form. The message names fields and rules, never what was written:
    the next attempt tells it to the model.
    """

    def __init__(self, message: str, *, paid: Usage) -> None:
        super().__init__(Category.BAD_OUTPUT, message, paid=paid)


class PermanentError(JobError):
    """No attempt can succeed as things are: a person must change something, then redrive."""

    def __init__(
        self, category: Category, message: str, *, nothing_happened: bool = False, paid: Usage | None = None
    ) -> None:
        if category in RETRYABLE:
            raise ValueError(f"{category} is retryable: raise RetryableError")
        super().__init__(category, message, nothing_happened=nothing_happened, paid=paid)


class KeyConflict(PermanentError):
    """The step key was used with other arguments. Names both fingerprints, and no content."""

    def __init__(self, recorded: str, given: str) -> None:
        super().__init__(
            Category.KEY_CONFLICT,
            f"this step was begun with other arguments: recorded fingerprint {recorded[:16]}, given {given[:16]}",
        )


class Failure(Frozen):
    """A failure as it is recorded and shown.

    `category` is what the last attempt met; `reason` is why the job stands where it is. They differ when
    a retryable failure has used up its attempts (`unavailable`, `retries_exhausted`) or the deadline.
    """

    category: Category
    reason: Category
    message: Annotated[str, Field(max_length=MESSAGE_LIMIT)]
    step: str | None = None


def failure(
    category: Category, message: str, step: str | None = None, *, reason: Category | None = None
) -> Failure:
    """A failure with its message made safe; the reason is the category unless told otherwise."""
    return Failure(category=category, reason=reason or category, message=sanitised(message), step=step)


# Redaction comes before truncation: a secret cut in half would no longer match. Every repetition is bounded, so
# that a hostile message costs linear time.
_NAMES = r"(?:api[_-]?key|key|token|secret|password|passwd|authorization)"
_SECRETS: Final = (
    (re.compile(r"\b(bearer|basic)\s{1,9}[A-Za-z0-9._~+/=-]+", re.IGNORECASE), r"\1 ***"),
    (re.compile(r"://[^/\s:@]{0,200}:[^/\s@]{1,200}@"), "://***@"),
    (re.compile(rf"""({_NAMES}["']?\s{{0,9}}[=:]\s{{0,9}}["']?)[^\s"',&;)}}]+""", re.IGNORECASE), r"\1***"),
    (re.compile(r"\b(?:ajk|sk|ghp|gho|github_pat|whsec|xox[abp])[_-][A-Za-z0-9_-]{8,}"), "***"),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{1,190}"), "***@***"),
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")
_READ_AT_MOST: Final = 20_000
"""Characters that are looked at: what lies behind is cut off anyway."""


def sanitised(message: str) -> str:
    """One printable line without secrets, at most MESSAGE_LIMIT characters."""
    line = _UNPRINTABLE.sub(" ", message[:_READ_AT_MOST])
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    return line if len(line) <= MESSAGE_LIMIT else line[: MESSAGE_LIMIT - 1] + "…"
