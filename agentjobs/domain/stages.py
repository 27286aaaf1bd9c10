"""Where a live job is on its way: finer than its state, for whoever asks why nothing moves."""

from enum import StrEnum


class Stage(StrEnum):
    """One of the places in which a live job may wait or work."""

    TO_START = "to_start"
    """Accepted; Temporal is not told of it yet."""

    TO_BEGIN = "to_begin"
    """Started; no worker has begun its first step."""

    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    """The moment of its next attempt is to come."""

    DUE = "due"
    """That moment has passed, and no worker has begun the attempt."""

    WAITING_APPROVAL = "waiting_approval"
