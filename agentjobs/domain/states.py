"""The states of a job and the one table of allowed moves.

Mirrored by the CHECK `jobs_transition_allowed` in the schema and by the diagram in docs/states.md;
tests/domain/test_states.py fails when the three disagree.
"""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands, as its owner sees it."""

    PENDING = "pending"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    WAITING_APPROVAL = "waiting_approval"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.CANCELLED, JobState.DEAD}),
    JobState.RUNNING: frozenset(
        {
            JobState.RETRY_WAIT,
            JobState.WAITING_APPROVAL,
            JobState.SUCCEEDED,
            JobState.DEAD,
            JobState.CANCELLED,
        }
    ),
    JobState.RETRY_WAIT: frozenset({JobState.RUNNING, JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED}),
    JobState.WAITING_APPROVAL: frozenset(
        {JobState.RUNNING, JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED}
    ),
    JobState.DEAD: frozenset({JobState.RUNNING, JobState.DISCARDED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.DISCARDED: frozenset(),
}

FINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
LIVE = frozenset({JobState.PENDING, JobState.RUNNING, JobState.RETRY_WAIT, JobState.WAITING_APPROVAL})
"""States in which the next step may begin."""


def may_move(before: JobState, after: JobState) -> bool:
    """Whether the table allows the move; staying is no move and always allowed."""
    return before is after or after in TRANSITIONS[before]
