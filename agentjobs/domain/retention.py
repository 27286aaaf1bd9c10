"""How long what is kept, after a job has ended (docs/retention.md)."""

from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from agentjobs.domain.job import Frozen

CONTENT_DAYS: Final = 30
"""A month to read a result, and to look into what went wrong."""

JOBS_DAYS: Final = 90
"""A quarter, as the longest window of the dead letters' report. An idempotency key holds as long."""

LONGEST_DAYS: Final = 3650

Days = Annotated[int, Field(ge=1, le=LONGEST_DAYS)]
"""Never less than a day: so long at least can a result be read, and a request be repeated under its key."""


class RetentionPolicy(Frozen):
    """Days from a job's end on. Nothing of a job that has not ended ever expires, nor of a dead one."""

    content_days: Days = CONTENT_DAYS
    jobs_days: Days = JOBS_DAYS

    @model_validator(mode="after")
    def _content_goes_first(self) -> Self:
        if self.jobs_days < self.content_days:
            raise ValueError("a job's row is not removed before its content")
        return self

    @property
    def content_age(self) -> timedelta:
        """Content goes when its job ended longer ago."""
        return timedelta(days=self.content_days)

    @property
    def jobs_age(self) -> timedelta:
        """The job's row and all that refers to it go when it ended longer ago."""
        return timedelta(days=self.jobs_days)
