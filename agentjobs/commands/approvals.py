"""Commands about calls that wait for a reviewer: list, show, approve, reject."""

from typing import Annotated, Final

import typer

from agentjobs.commands.approval_answers import Approval
from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.commands.words import compact, time_of

app = typer.Typer(help="Calls of tools that wait for a reviewer.", no_args_is_help=True)

COLUMNS: Final = ("JOB", "STEP", "TOOL", "ASKED", "UNTIL", "ARGUMENTS")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", show_default=False)]
Step = Annotated[
    str | None, typer.Option(help="Only if just this step waits; else the one that does.", show_default=False)
]
Note = Annotated[str, typer.Option(help="Why; kept with the decision.", show_default=False)]


@app.command("list")
def list_open(
    context: typer.Context,
    limit: Limit = 50,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """List what waits for a decision, the longest waiting first."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        waiting, cursor = here.api.approvals(None if show_all else limit)
        if as_json:
            here.screen.documents(waiting, cursor)
            return
        here.screen.table(COLUMNS, [_row(here, one) for one in waiting], empty="no call waits for an approval")
        here.screen.tell_more(cursor)


@app.command()
def show(context: typer.Context, job_id: JobId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Show every request of a job, with the whole arguments and what was decided."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        asked = here.api.approvals_of_job(job_id)
        if as_json:
            here.screen.documents(asked, None)
            return
        if not asked:
            here.screen.tell("the job never asked for an approval")
        for one in asked:
            here.screen.facts(_facts(one))


@app.command()
def approve(
    context: typer.Context,
    job_id: JobId,
    note: Note,
    step: Step = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Let the call that waits be carried out, just as it is shown."""
    _decide(context, job_id, step, "approve", note, home, as_json=as_json)


@app.command()
def reject(
    context: typer.Context,
    job_id: JobId,
    note: Note,
    step: Step = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Refuse the call that waits: it is not made, and the job is dead."""
    _decide(context, job_id, step, "reject", note, home, as_json=as_json)


def _decide(
    context: typer.Context, job_id: str, step: str | None, decision: str, note: str, home: Home, *, as_json: bool
) -> None:
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        shown = _waiting(here, job_id, step)
        body = {"decision": decision, "note": note, "fingerprint": shown.fingerprint}
        decided = here.api.decide(job_id, shown.step, body)
        if as_json:
            here.screen.document(decided.document())
        else:
            here.screen.line(f"{decided.state}: {decided.tool} of {decided.step} {_quoted(decided)}")


def _waiting(here: Opened, job_id: str, step: str | None) -> Approval:
    """What is decided on, as it stands now: the decision names its fingerprint, so nothing else is approved."""
    asked = [one for one in here.api.approvals_of_job(job_id) if step in {None, one.step}]
    if not asked:
        raise WrongUsage("the job asks for no approval: `python starter.py approvals list` shows what does")
    return next((one for one in asked if one.is_open), asked[-1])


def _row(here: Opened, one: Approval) -> list[object]:
    until = None if one.expires_at is None else time_of(one.expires_at)
    return [one.job_id, one.step, one.tool, here.screen.moment(one.requested_at), until, _quoted(one)]


def _quoted(one: Approval) -> str:
    return "" if one.arguments is None else compact(one.arguments)


def _facts(one: Approval) -> list[tuple[str, object]]:
    arguments = one.arguments or {}
    return [
        ("step", one.step),
        ("tool", one.tool),
        *((f"  {name}", value if isinstance(value, str) else compact(value)) for name, value in arguments.items()),
        ("fingerprint", one.fingerprint),
        ("state", one.state),
        ("until", None if one.expires_at is None else time_of(one.expires_at)),
        ("decided by", one.decided_by),
        ("note", one.note),
    ]
