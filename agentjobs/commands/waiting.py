"""The command `waiting`: which jobs wait, for what, until when."""

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from agentjobs.commands.answers import Job, WaitCount, Waiting
from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.commands.render import Screen
from agentjobs.commands.words import counted, length_of, time_of

app = typer.Typer()

# The first two are never cut on a terminal, the last one is cut last: what it waits for.
WAITING_COLUMNS: Final = ("ID", "IN", "STEP", "AGENT", "ATTEMPT", "UNTIL", "WAITS FOR")
UI_QUERY: Final = 'JobState = "retry_wait"'
DUE: Final = "due"
A_DAY: Final = timedelta(days=1)


@app.command()
def waiting(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Show at most so many.", metavar="N")] = 50,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Show which jobs wait for another attempt, for what and until when."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        found = here.api.waiting(limit)
        if as_json:
            here.screen.document(found.document())
        else:
            _show(here, found)


def _show(here: Opened, found: Waiting) -> None:
    now = here.outside.now()
    rows = [_row(job, here.screen, now) for job in found.items]
    here.screen.table(WAITING_COLUMNS, rows, empty="no job waits for another attempt")
    for count in found.counts:
        here.screen.line(_count_words(count, now))
    if found.total > len(found.items):
        here.screen.tell(f"{found.total} wait in all: a larger --limit shows up to 200")
    if (view := found.links.get("temporal_ui")) is not None:
        here.screen.tell(f"in the Temporal UI: {UI_QUERY}  {view}")


def _row(job: Job, screen: Screen, now: datetime) -> list[object]:
    failure = job.failure
    why = None if failure is None else ": ".join(filter(None, (failure.category, failure.message)))
    until = job.next_attempt_at
    told = None if until is None else (_short(until, now) if screen.out.is_terminal else time_of(until))
    return [job.id, until and _in(until, now), job.step, job.agent, job.attempt or None, told, why]


def _count_words(count: WaitCount, now: datetime) -> str:
    ahead = _in(count.next_at, now)
    first = "the first is due" if ahead == DUE else f"the first goes on in {ahead}"
    return f"{count.category}: {counted(count.count, 'job')}, {first}"


def _in(moment: datetime, now: datetime) -> str:
    """How long until then. What is past is due: it goes on as soon as a worker takes it."""
    return DUE if moment <= now else length_of((moment - now).total_seconds())


def _short(moment: datetime, now: datetime) -> str:
    """The time of day, or of a more distant moment the day: short enough to be whole in a narrow column."""
    date, time = time_of(moment).split("T")
    return time if abs(moment - now) < A_DAY else date
