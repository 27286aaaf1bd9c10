"""Quotas: how much of what a user, or a tenant, may have at once."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from agentjobs.domain.job import Frozen

WINDOW_SECONDS: Final = 60
"""What PER_MINUTE looks back on; the ledger counts by the same (migration 0010)."""

LOOK_AGAIN_SECONDS: Final = 5
"""Nobody knows when a job will end; this often a look costs next to nothing."""

QUOTA_LIMIT: Final = 1_000_000
"""What is more than this is meant as no limit, and is said so."""


class Quota(StrEnum):
    """What is counted."""

    QUEUE_LENGTH = "queue_length"
    """The tenant's jobs that wait for their start."""

    PER_MINUTE = "per_minute"
    """The user's jobs that were accepted within the last minute."""

    IN_FLIGHT = "in_flight"
    """The user's jobs that are neither over nor dead."""


class Limits(Frozen):
    """The most of each; None is no limit."""

    in_flight: Annotated[int, Field(ge=1)] | None = None
    per_minute: Annotated[int, Field(ge=1)] | None = None
    queue_length: Annotated[int, Field(ge=1)] | None = None


NO_LIMITS: Final = Limits()


class QuotaUse(Frozen):
    """How much of a quota is in use; `limit` None is no limit. More than the limit may be: by a redrive."""

    quota: Quota
    limit: int | None
    in_use: int


class QuotaExceeded(Exception):
    """The job was not accepted: ask again after `wait_seconds`, under the same idempotency key."""

    def __init__(self, use: QuotaUse, wait_seconds: int) -> None:
        super().__init__(f"over quota: {use.quota}")
        self.use = use
        self.wait_seconds = wait_seconds
