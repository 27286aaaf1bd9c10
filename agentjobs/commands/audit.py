"""The command that shows the audit log, for people who may review or administer."""

from typing import Annotated, Final

import typer

from agentjobs.commands.answers import AuditEntry
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, opened
from agentjobs.commands.place import Door
from agentjobs.commands.render import Screen
from agentjobs.commands.words import compact

AUDIT_COLUMNS: Final = ("AT", "ACTOR", "ACTION", "TARGET", "NOTE", "DETAILS")

app = typer.Typer()


@app.command()
def audit(
    context: typer.Context,
    actor: Annotated[str | None, typer.Option(help="Only of this person.", show_default=False)] = None,
    action: Annotated[
        str | None, typer.Option(help="Only such deeds: redrive, read_dead_letter, ...", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Only what was done to this: a job's id, ...", show_default=False)
    ] = None,
    limit: Limit = 50,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Show who looked, decided, allowed and changed, the latest first."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        wanted = {"actor": actor, "action": action, "target": target}
        entries, cursor = here.api.audit(None if show_all else limit, wanted)
        if as_json:
            here.screen.documents(entries, cursor)
            return
        rows = [_row(entry, here.screen) for entry in entries]
        here.screen.table(AUDIT_COLUMNS, rows, empty="nothing is on record")
        here.screen.tell_more(cursor)


def _row(entry: AuditEntry, screen: Screen) -> list[object]:
    return [
        screen.moment(entry.at),
        entry.actor,
        entry.action,
        entry.target,
        entry.note,
        compact(dict(entry.details)) if entry.details else None,
    ]
