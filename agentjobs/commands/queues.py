"""The command `queues`: what is pending, and where."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import typer

from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.commands.queue_answers import Following, Installation, Queues
from agentjobs.commands.words import length_of
from agentjobs.domain.stages import Stage

app = typer.Typer()

STAGE_COLUMNS: Final = ("STAGE", "JOBS", "OLDEST", "WHERE THEY ARE")
NEXT_COLUMNS: Final = ("NEXT", "IN", "STEP", "ATTEMPT", "AFTER")
OUTBOX_COLUMNS: Final = ("OUTBOX", "ROWS", "OLDEST", "PUT OFF")
WORKER_COLUMNS: Final = ("WORKER", "IN HAND", "OLDEST", "STARTED", "BUILD")
TASK_QUEUE_COLUMNS: Final = ("TASK QUEUE", "BACKLOG", "OLDEST", "POLLERS", "SEEN")

STALE: Final = timedelta(seconds=60)
"""A relay looks every few seconds."""

_WHERE: Final = {
    Stage.TO_START: "accepted, in the outbox or over the running cap",
    Stage.TO_BEGIN: "started, no worker has begun yet",
    Stage.RUNNING: "a worker has a step in hand, or is about to",
    Stage.RETRY_WAIT: "wait for their next attempt",
    Stage.DUE: "their next attempt may begin",
    Stage.WAITING_APPROVAL: "`python starter.py approvals list`",
}


@app.command()
def queues(context: typer.Context, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Show what is pending and where: jobs by stage; with the first admin key outbox, workers and task queues."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        found = here.api.queues()
        if as_json:
            here.screen.document(found.document())
        else:
            _show(here, found)


def _show(here: Opened, found: Queues) -> None:
    moment = here.screen.moment
    rows = [[one.stage, one.count, moment(one.oldest_at), _where(one.stage)] for one in found.stages]
    here.screen.table(STAGE_COLUMNS, rows, empty="nothing is told of jobs")
    if found.next:
        now = here.outside.now()
        _below(here, NEXT_COLUMNS, [_next_row(one, now) for one in found.next], "")
    if found.installation is not None:
        _show_installation(here, found.installation)


def _show_installation(here: Opened, all_of_it: Installation) -> None:
    moment = here.screen.moment
    outbox = [[one.topic, one.count, moment(one.oldest_at), one.put_off or None] for one in all_of_it.outbox]
    workers = [
        [one.identity, one.in_hand, moment(one.oldest_at), moment(one.started_at), one.build]
        for one in all_of_it.workers
    ]
    task_queues = [
        [f"{one.name} ({one.kind})", one.backlog, length_of(one.oldest_seconds), one.pollers, moment(one.seen_at)]
        for one in all_of_it.task_queues
    ]
    _below(here, OUTBOX_COLUMNS, outbox, "the outbox is empty")
    _below(here, WORKER_COLUMNS, workers, "no worker is there: start one with `python worker.py`")
    _below(here, TASK_QUEUE_COLUMNS, task_queues, "no relay has looked at a task queue yet")
    _tell_what_is_stale(here, all_of_it)


def _below(here: Opened, columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """A table under others."""
    if rows:
        here.screen.line("")
    here.screen.table(columns, rows, empty=empty)


def _tell_what_is_stale(here: Opened, all_of_it: Installation) -> None:
    seen = [one.seen_at for one in all_of_it.task_queues if one.seen_at is not None]
    if seen and (age := here.outside.now() - max(seen)) > STALE:
        told = length_of(age.total_seconds())
        here.screen.tell(f"the task queues were seen {told} ago: does a relay run, and reach Temporal?")


def _next_row(one: Following, now: datetime) -> list[object]:
    until = one.next_attempt_at
    ahead = None if until is None else (until - now).total_seconds()
    told = None if ahead is None else ("due" if ahead <= 0 else length_of(ahead))
    return [one.job_id, told, one.step, one.attempt or None, one.category]


def _where(stage: str) -> str | None:
    return _WHERE[Stage(stage)] if stage in set(Stage) else None
