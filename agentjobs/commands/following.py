"""Follow a job until it ends: ask, show what changed, wait a little longer each time nothing did."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from agentjobs.commands.answers import Job
from agentjobs.commands.job_lines import change_line, live_line
from agentjobs.commands.outside import Outside
from agentjobs.commands.patience import FOLLOWING, NO_PATIENCE
from agentjobs.commands.render import Screen
from agentjobs.commands.words import one_line

if TYPE_CHECKING:
    from agentjobs.commands.client import Client

FIRST_PAUSE_SECONDS: Final = 0.25
PAUSE_GROWTH: Final = 1.5
LONGEST_PAUSE_SECONDS: Final = 2.0
"""Hundreds may follow at once; a person does not notice two seconds."""

TICK_SECONDS: Final = 1.0


class Silent:
    """Shows nothing: for many jobs at once."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def job(self, job: Job) -> None:
        """A new reading of the job."""

    def pause(self, seconds: float) -> None:
        """Wait."""
        self._outside.pause(seconds)


class Changes(Silent):
    """One line for each change."""

    def __init__(self, console: Console, outside: Outside) -> None:
        super().__init__(outside)
        self._console = console
        self._last: Job | None = None

    def job(self, job: Job) -> None:
        """Show the job if it changed."""
        if self._last is None or _what_matters(job) != _what_matters(self._last):
            line = change_line(job, self._outside.now())
            self._console.print(Text(one_line(line)), soft_wrap=True)
        self._last = job


class Countdown(Changes):
    """One line for each change, and below them one that moves."""

    def __init__(self, console: Console, outside: Outside, live: Live) -> None:
        super().__init__(console, outside)
        self._live = live

    def job(self, job: Job) -> None:
        """Show the job if it changed."""
        self._move(job)
        super().job(job)

    def pause(self, seconds: float) -> None:
        """Wait, with the moving line brought up to date every second."""
        while seconds > 0:
            if self._last is not None:
                self._move(self._last)
            super().pause(min(seconds, TICK_SECONDS))
            seconds -= TICK_SECONDS

    def _move(self, job: Job) -> None:
        words = "" if job.has_ended else live_line(job, self._outside.now())
        self._live.update(Text(one_line(words), style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)


@contextmanager
def shown_on(console: Console, screen: Screen, outside: Outside) -> Iterator[Silent]:
    """The way of showing that fits the console: moving on a terminal, else line by line."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield Changes(console, outside)
        return
    with (
        Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live,
        screen.speaking_over(console),
    ):
        yield Countdown(console, outside, live)


def follow(api: "Client", job_id: str, shown: Silent) -> Job:
    """The job as it ended: final, or dead."""
    pause = FIRST_PAUSE_SECONDS
    job = api.job(job_id, NO_PATIENCE)
    shown.job(job)
    while not job.has_ended:
        shown.pause(pause)
        before, job = job, api.job(job_id, FOLLOWING)
        shown.job(job)
        unchanged = _what_matters(before) == _what_matters(job)
        pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE_SECONDS) if unchanged else FIRST_PAUSE_SECONDS
    return job


def _what_matters(job: Job) -> object:
    return job.state, job.step, job.attempt, job.next_attempt_at, job.failure, job.cancel_requested_at
