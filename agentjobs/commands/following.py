"""Follow a job until it ends: by its event stream, or where there is none by asking again and again."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from agentjobs.commands.answers import Job
from agentjobs.commands.beside import beside
from agentjobs.commands.errors import ApiRefused, ApiUnreachable
from agentjobs.commands.event_lines import Event, Told, event_line
from agentjobs.commands.job_lines import change_line, live_line
from agentjobs.commands.outside import Outside
from agentjobs.commands.patience import FOLLOWING, NO_PATIENCE
from agentjobs.commands.render import Screen
from agentjobs.commands.words import lines, one_line
from agentjobs.domain.events import EventType
from agentjobs.domain.states import JobState

if TYPE_CHECKING:
    from agentjobs.commands.client import Client

FIRST_PAUSE_SECONDS: Final = 0.25
PAUSE_GROWTH: Final = 1.5
LONGEST_PAUSE_SECONDS: Final = 2.0
"""Hundreds may follow at once; a person does not notice two seconds."""

TICK_SECONDS: Final = 1.0
TEXT_LINES: Final = 6
TEXT_CHARACTERS: Final = 2_000
"""As much of an answer that is being written as a terminal shows, and as is kept for it."""


ENDS: Final = frozenset({EventType.SUCCEEDED, EventType.CANCELLED, EventType.DISCARDED, EventType.DIED})


class Silent:
    """Shows nothing: for many jobs at once, which are asked after now and then."""

    reads_events = False

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def job(self, job: Job) -> None:
        """A new reading of the job."""

    def event(self, event: Event, job: Job) -> None:
        """Something happened; `job` as it stood soon after."""

    def approval(self, until: datetime) -> None:
        """A call waits for a reviewer, until then."""

    def text(self, event: Event) -> None:
        """A piece of an answer as it is written."""

    def pause(self, seconds: float) -> None:
        """Wait."""
        self._outside.pause(seconds)

    def tick(self) -> None:
        """A second has passed."""


class Changes(Silent):
    """One line for each event, or for each change that was seen."""

    reads_events = True

    def __init__(self, console: Console, outside: Outside) -> None:
        super().__init__(outside)
        self._console = console
        self._last: Job | None = None

    def job(self, job: Job) -> None:
        """Show the job if it changed."""
        if self._last is None or _what_matters(job) != _what_matters(self._last):
            self._line(change_line(job, self._outside.now()))
        self._last = job

    def event(self, event: Event, job: Job) -> None:
        """Show the event; the job's own line would say the same."""
        self._line(event_line(event, job, self._outside.now()))
        self._last = job

    def _line(self, words: str) -> None:
        self._console.print(Text(one_line(words)), soft_wrap=True)


class Countdown(Changes):
    """One line for each event, and below them what moves: the wait, and the answer as it is written."""

    def __init__(self, console: Console, outside: Outside, live: Live) -> None:
        super().__init__(console, outside)
        self._live = live
        self._approval_until: datetime | None = None
        self._written: dict[int | None, str] = {}

    def job(self, job: Job) -> None:
        """Show the job if it changed."""
        self._move(job)
        super().job(job)

    def event(self, event: Event, job: Job) -> None:
        """Show the event. A piece of text counts only while its attempt is under way."""
        if event.type != EventType.CANCEL_REQUESTED:
            self._written.clear()
        self._approval_until = event.expires_at or self._approval_until
        self._move(job)
        super().event(event, job)

    def approval(self, until: datetime) -> None:
        """Count down to it."""
        self._approval_until = until
        self.tick()

    def text(self, event: Event) -> None:
        """Show the end of what is written."""
        # Under one attempt only: an earlier one that failed does not count any more.
        written = self._written.get(event.attempt_id, "") + (event.text or "")
        self._written = {event.attempt_id: written[-TEXT_CHARACTERS:]}
        self.tick()

    def pause(self, seconds: float) -> None:
        """Wait, with the moving line brought up to date every second."""
        while seconds > 0:
            self.tick()
            super().pause(min(seconds, TICK_SECONDS))
            seconds -= TICK_SECONDS

    def tick(self) -> None:
        """Bring the moving lines up to date."""
        if self._last is not None:
            self._move(self._last)

    def _move(self, job: Job) -> None:
        words = "" if job.has_ended else live_line(job, self._outside.now(), self._approval_until)
        moving = Text(one_line(words), style="dim", no_wrap=True, overflow="ellipsis")
        self._live.update(Group(moving, *self._end_of_text()), refresh=True)

    def _end_of_text(self) -> list[Text]:
        written = "\n".join(lines("".join(self._written.values())))
        return list(Text(written).wrap(self._console, self._console.width))[-TEXT_LINES:] if written else []


class Documents(Changes):
    """One line of JSON on stdout for each event."""

    def __init__(self, console: Console, screen: Screen, outside: Outside) -> None:
        super().__init__(console, outside)
        self._screen = screen

    def event(self, event: Event, job: Job) -> None:
        """Write the event as the API gave it."""
        self._screen.document(event.document())
        self._last = job

    def text(self, event: Event) -> None:
        """The same: who reads it can tell by its attempt whether it counts."""
        self._screen.document(event.document())


@contextmanager
def shown_on(console: Console, screen: Screen, outside: Outside, *, documents: bool = False) -> Iterator[Silent]:
    """The way of showing that fits: events as JSON if `documents`; moving on a terminal; else line by line."""
    if documents:
        yield Documents(console, screen, outside)
        return
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
    job = api.job(job_id, NO_PATIENCE)
    shown.job(job)
    if job.state == JobState.WAITING_APPROVAL:
        _tell_until_when(api, job, shown)
    if job.has_ended or not shown.reads_events:
        return _asked(api, job, shown)
    try:
        return _Reading(api, job, shown).run()
    except ApiRefused:
        # An older API, or one that has no stream to spare for this user.
        return _asked(api, job, shown)


def _tell_until_when(api: "Client", job: Job, shown: Silent) -> None:
    # Of a request that was made before anybody watched, no event comes.
    with suppress(ApiRefused):
        for asked in api.approvals_of_job(job.id):
            if asked.is_open and asked.expires_at is not None:
                shown.approval(asked.expires_at)


class _Reading:
    """Follow by the stream. When it breaks, the job is asked after, patiently, and the stream gone on with."""

    def __init__(self, api: "Client", job: Job, shown: Silent) -> None:
        self._api = api
        self._job = job
        self._shown = shown
        self._seen: str | None = None
        self._missed_the_end = False

    def run(self) -> Job:
        pause = FIRST_PAUSE_SECONDS
        while not self._job.has_ended:
            seen = self._seen
            self._read()
            self._job = self._api.job(self._job.id, FOLLOWING)
            if self._job.has_ended and self._missed_the_end:
                self._read()
            self._shown.job(self._job)
            if not self._job.has_ended:
                pause = (
                    FIRST_PAUSE_SECONDS if self._seen != seen else min(pause * PAUSE_GROWTH, LONGEST_PAUSE_SECONDS)
                )
                self._shown.pause(pause)
        return self._job

    def _read(self) -> None:
        try:
            for told in beside(self._api.events(self._job.id, self._seen), TICK_SECONDS):
                if told is None:
                    self._shown.tick()
                else:
                    self._take(told)
        except ApiUnreachable:
            return

    def _take(self, told: Told) -> None:
        self._seen = told.id or self._seen
        self._missed_the_end = told.event is None or told.event.type not in ENDS
        if told.job is not None:
            self._job = told.job
            self._shown.job(told.job)
        elif told.event is not None and told.event.type == EventType.TEXT:
            self._shown.text(told.event)
        elif told.event is not None:
            # An event holds what happened; where the job stands, and what it has used, is for the job to say.
            self._job = self._api.job(self._job.id, FOLLOWING)
            self._shown.event(told.event, self._job)


def _asked(api: "Client", job: Job, shown: Silent) -> Job:
    pause = FIRST_PAUSE_SECONDS
    while not job.has_ended:
        shown.pause(pause)
        before, job = job, api.job(job.id, FOLLOWING)
        shown.job(job)
        unchanged = _what_matters(before) == _what_matters(job)
        pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE_SECONDS) if unchanged else FIRST_PAUSE_SECONDS
    return job


def _what_matters(job: Job) -> object:
    return job.state, job.step, job.attempt, job.next_attempt_at, job.failure, job.cancel_requested_at
