"""How long and how often each kind of activity may run. Named once, with the reason for each number."""

from datetime import timedelta
from typing import Final, TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType


class Options(TypedDict, total=False):
    """The options that every activity of a kind shares; schedule-to-close comes from the job's deadline."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


def within(options: Options, remaining: timedelta) -> Options:
    """The options, bounded by what remains of the job's deadline: no activity can outlive it."""
    return {**options, "schedule_to_close_timeout": remaining}


# Waits between attempts are given by the activity (next_retry_delay, with jitter); these intervals hold only for
# attempts that never reported back, such as a killed worker's. How many attempts there are is decided by the
# ledger (agentjobs/domain/waits.py): Temporal would count the waits that a provider asked for, too.
_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10), maximum_attempts=0
)

HEARTBEAT_TIMEOUT: Final = timedelta(seconds=10)
"""A dead worker is noticed after this long. Shorter ones expire on a busy machine without any death."""

MODEL_CALL: Final = Options(
    start_to_close_timeout=timedelta(seconds=180),  # the longest answers of large models take two minutes
    heartbeat_timeout=HEARTBEAT_TIMEOUT,
    retry_policy=_RETRIES,
    # The truth about a call in flight is known only when it has ended.
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)

TOOL_CALL: Final = Options(
    start_to_close_timeout=timedelta(seconds=60),  # a ticket system that needs a minute is down
    heartbeat_timeout=HEARTBEAT_TIMEOUT,
    retry_policy=_RETRIES,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)

UNDO: Final = Options(
    start_to_close_timeout=timedelta(seconds=60),
    schedule_to_close_timeout=timedelta(days=1),  # a compensation outlives the job's own deadline
    heartbeat_timeout=HEARTBEAT_TIMEOUT,
    retry_policy=_RETRIES,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)

RECORD: Final = Options(
    start_to_close_timeout=timedelta(seconds=15),  # one statement; the pool gives up after ten seconds
    schedule_to_close_timeout=timedelta(days=7),  # a database that is down for a weekend loses no outcome
    retry_policy=_RETRIES,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
