"""Commands about jobs that are there: status, watch, list, cancel, attempts."""

from typing import Annotated

import typer

from agentjobs.commands.answers import Job
from agentjobs.commands.following import follow, shown_on
from agentjobs.commands.job_lines import (
    ATTEMPT_COLUMNS,
    JOB_COLUMNS,
    attempt_row,
    attempts_total,
    job_facts,
    job_row,
    outcome_facts,
)
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.domain.states import JobState

app = typer.Typer()

JobId = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` gave.", show_default=False)]


@app.command()
def status(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Show where a job stands."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        job = here.api.job(job_id)
        if as_json:
            here.screen.document(job.document())
        else:
            here.screen.facts(job_facts(job, here.outside.now()))


@app.command()
def watch(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Follow a job until it ends. Exit code 0 when it succeeded, else 1. As JSON: each event, then the job."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        job = watched(here, job_id, beside=as_json, documents=as_json)
        if as_json:
            here.screen.document(job.document())
        else:
            here.screen.facts(outcome_facts(job))
    if not job.has_succeeded:
        raise typer.Exit(1)


@app.command("list")
def list_jobs(
    context: typer.Context,
    state: Annotated[JobState | None, typer.Option(help="Only jobs in this state.", show_default=False)] = None,
    agent: Annotated[str | None, typer.Option(help="Only jobs of this agent.", show_default=False)] = None,
    limit: Limit = 50,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        jobs, cursor = here.api.jobs(None if show_all else limit, {"state": state, "agent": agent})
        if as_json:
            here.screen.documents(jobs, cursor)
            return
        here.screen.table(JOB_COLUMNS, [job_row(job, here.screen) for job in jobs], empty="no jobs")
        here.screen.tell_more(cursor)


@app.command()
def cancel(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Ask a job to stop; what it did is undone where that is possible."""
    with opened(context, home, as_json=as_json) as here:
        job = here.api.cancel(job_id)
        if as_json:
            here.screen.document(job.document())
        else:
            here.screen.line(f"cancel asked: {job.id} is {job.state}")


@app.command()
def attempts(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """List every attempt of a job, with what it cost."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        found = here.api.attempts(job_id)
        if as_json:
            here.screen.documents(found)
            return
        rows = [attempt_row(attempt, here.screen) for attempt in found]
        here.screen.table(ATTEMPT_COLUMNS, rows, empty="no attempts yet")
        if found:
            here.screen.line(attempts_total(found))


def watched(here: Opened, job_id: str, *, beside: bool, documents: bool = False) -> Job:
    """Follow a job and show it; Ctrl-C ends the watching, not the job."""
    console = here.screen.beside if beside else here.screen.out
    try:
        with shown_on(console, here.screen, here.outside, documents=documents) as shown:
            return follow(here.api, job_id, shown)
    except KeyboardInterrupt:
        here.screen.tell(f"the job goes on: `python starter.py watch {job_id}` follows it again")
        raise
