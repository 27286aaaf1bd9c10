"""What the Temporal UI shows of a job that waits for its next attempt: what for, and until when.

A workflow does not hear of its activities' failed attempts. The relay tells it of those waits that are worth
showing, and of not too many (agentjobs/ledger/queries/waits.sql), since each is a few events in its history.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from temporalio import workflow

from activities.inputs import WaitNotice


class Waiting:
    """The wait that is shown now, if one is. `show` is called with it, and with None when it is over."""

    def __init__(self, show: Callable[[WaitNotice | None], None]) -> None:
        self._show = show
        self._shown: WaitNotice | None = None

    async def until_over(self, notice: WaitNotice) -> None:
        """Show the wait until it is over, or another one takes its place."""
        remaining = notice.until - workflow.now()
        if remaining.total_seconds() <= 0:
            return
        self._shown = notice
        self._show(notice)
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._shown is not notice, timeout=remaining, timeout_summary=f"{notice.step} waits"
            )
        if self._shown is notice:
            self.over()

    def over(self) -> None:
        """Nothing waits any more."""
        if self.forget():
            self._show(None)

    def forget(self) -> bool:
        """Nothing waits any more, and something else is shown. Whether a wait was."""
        shown, self._shown = self._shown, None
        return shown is not None


def told(notice: WaitNotice) -> str:
    """One line for people."""
    return f"{notice.step} waits until {moment(notice.until)}: {notice.category}, after attempt {notice.attempt}"


def moment(at: datetime) -> str:
    """A moment for people."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
