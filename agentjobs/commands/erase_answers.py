"""What the API answers about erasures."""

from pydantic import AwareDatetime

from agentjobs.commands.answers import Answer, Count


class JobsToErase(Answer):
    """The jobs that it is about, counted."""

    total: Count = 0
    erased: Count = 0
    not_ended: Count = 0
    workflows_left: Count = 0


class LeftOutside(Answer):
    """One thing that was done at a destination that is not ours."""

    tool: str
    key: str
    state: str | None = None
    job_id: str | None = None


class Erasure(Answer):
    """An order to erase."""

    id: str
    user: str | None = None
    job_id: str | None = None
    completed_at: AwareDatetime | None = None
    jobs: JobsToErase = JobsToErase()
    left_outside: tuple[LeftOutside, ...] = ()
    left_outside_count: Count = 0
    not_covered: tuple[str, ...] = ()
