"""Commands about erasure, for admins: of one job, of all that a user has submitted, and how far it has come."""

from typing import Annotated

import typer

from agentjobs.commands.erase_answers import Erasure
from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.place import Door

app = typer.Typer(help="Erase what somebody has written, and what was made of it.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", show_default=False)]
User = Annotated[str, typer.Argument(metavar="USER", help="Whose jobs.", show_default=False)]
ErasureId = Annotated[
    str, typer.Argument(metavar="ID", help="The id that `erase job` or `erase user` gave.", show_default=False)
]


@app.command()
def job(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Erase a job that has ended; a dead one is discarded first. It cannot be taken back."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show(here, here.api.erase_job(job_id))


@app.command()
def user(context: typer.Context, user_id: User, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Erase all jobs that the user has submitted until now; live ones are cancelled. It cannot be taken back."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show(here, here.api.erase_user(user_id))


@app.command()
def show(
    context: typer.Context, erasure_id: ErasureId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Show how far an erasure has come, and what is left outside."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        _show(here, here.api.erasure(erasure_id))


def _show(here: Opened, erasure: Erasure) -> None:
    if here.screen.as_json:
        here.screen.document(erasure.document())
        return
    jobs = erasure.jobs
    here.screen.facts(
        [
            ("id", erasure.id),
            ("of", f"job {erasure.job_id}" if erasure.user is None else f"user {erasure.user}"),
            ("state", "under way" if erasure.completed_at is None else "completed"),
            ("jobs", f"{jobs.erased} of {jobs.total} erased, {jobs.not_ended} have not ended yet"),
            ("workflows", f"{jobs.workflows_left} to be deleted"),
            ("left outside", f"{erasure.left_outside_count} effects at other destinations"),
        ]
    )
    for one in erasure.left_outside:
        here.screen.line(f"  {one.tool} {one.key} ({one.state})")
    if erasure.completed_at is None:
        here.screen.tell(f"`python starter.py erase show {erasure.id}` shows how it goes on")
