"""Many requests from one file: several at once, answered in the order of the file."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from agentjobs.commands.answers import Job
from agentjobs.commands.ending import tell_error
from agentjobs.commands.errors import ApiUnreachable, CommandError
from agentjobs.commands.outside import Outside
from agentjobs.commands.reading import Line
from agentjobs.commands.render import Screen
from agentjobs.commands.words import counted

AT_ONCE: Final = 8
"""Acceptance is one round trip, so a few keep the API busy without taking it from others."""

READ_AHEAD: Final = 4 * AT_ONCE
PROGRESS_EVERY: Final = 100


@dataclass(frozen=True)
class Outcome:
    """What became of one line."""

    number: int
    key: str | None = None
    job: Job | None = None
    error: CommandError | None = None
    wrong: str | None = None

    @property
    def complaint(self) -> str | None:
        """Why the line failed, if it did."""
        return self.wrong or (str(self.error) if self.error else None)


Send = Callable[[Line], Outcome]


class Batch:
    """Sends lines and shows what became of each."""

    def __init__(self, send: Send, screen: Screen, outside: Outside) -> None:
        self._send = send
        self._screen = screen
        self._outside = outside
        self._under_way: deque[Future[Outcome]] = deque()
        self._accepted = 0
        self._failed = 0
        self._unreachable = False

    def run(self, lines: Iterable[Line]) -> int:
        """The exit code. Ends early only when the API cannot be reached, or by Ctrl-C."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                self._send_all(lines, pool)
            except KeyboardInterrupt:
                self._stop()
                self._show_down_to(0)
                raise
            except BaseException:
                self._stop()
                raise
            finally:
                self._tell_summary()
        return ApiUnreachable.exit_code if self._unreachable else int(self._failed > 0)

    def _send_all(self, lines: Iterable[Line], pool: ThreadPoolExecutor) -> None:
        for line in lines:
            self._under_way.append(pool.submit(self._send, line))
            self._show_down_to(READ_AHEAD)
            if self._unreachable:
                break
        self._show_down_to(0)

    def _show_down_to(self, count: int) -> None:
        """Show outcomes in order: those that are there, and as many more as leaves `count` under way."""
        while self._under_way and (len(self._under_way) > count or self._under_way[0].done()):
            done = self._under_way.popleft()
            if not done.cancelled():
                self._show(done.result())

    def _show(self, outcome: Outcome) -> None:
        if outcome.job is not None:
            self._accepted += 1
            self._show_job(outcome, outcome.job)
        if outcome.complaint:
            self._failed += 1
            self._show_complaint(outcome)
        if isinstance(outcome.error, ApiUnreachable) and not self._unreachable:
            self._unreachable = True
            self._stop()

    def _show_job(self, outcome: Outcome, job: Job) -> None:
        if self._screen.as_json:
            self._screen.document({"line": outcome.number, "key": outcome.key, "job": job.document()})
        else:
            self._screen.line(job.id)
        if self._accepted % PROGRESS_EVERY == 0:
            self._screen.tell(f"{self._accepted} accepted")

    def _show_complaint(self, outcome: Outcome) -> None:
        key = f' (repeat it with "key": "{outcome.key}")' if outcome.key and outcome.job is None else ""
        tell_error(f"line {outcome.number}: {outcome.complaint}{key}")
        if self._screen.as_json and outcome.job is None:
            self._screen.document({"line": outcome.number, "key": outcome.key, "error": outcome.complaint})

    def _stop(self) -> None:
        """Nothing new; what is being asked ends its present try, so that its outcome is known."""
        self._outside.stopped.set()
        for future in self._under_way:
            future.cancel()

    def _tell_summary(self) -> None:
        stopped = "; the lines after were not sent" if self._outside.stopped.is_set() else ""
        self._screen.tell(f"{counted(self._accepted, 'job')} accepted, {self._failed} failed{stopped}")
