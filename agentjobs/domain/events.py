"""The names of what happens to a job, as its event stream and `watch` show them."""

from enum import StrEnum


class EventType(StrEnum):
    """One event of a job. Its data holds ids, counts and categories, and no content but that of TEXT."""

    ACCEPTED = "accepted"
    STARTED = "started"
    STEP_COMPLETED = "step_completed"
    RETRY_SCHEDULED = "retry_scheduled"
    ATTEMPT_STARTED = "attempt_started"
    TEXT = "text"
    """A piece of an answer as it is written. It counts only if its attempt succeeds."""

    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    APPROVAL_EXPIRED = "approval_expired"
    CANCEL_REQUESTED = "cancel_requested"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    DIED = "died"
    REDRIVE_REQUESTED = "redrive_requested"
    REDRIVEN = "redriven"
    DISCARD_REQUESTED = "discard_requested"
    DISCARDED = "discarded"
