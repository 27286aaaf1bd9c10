"""Commands about grants, for admins: what users' jobs may do outside."""

from typing import Annotated, Final

import typer

from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, opened
from agentjobs.commands.place import Door

app = typer.Typer(help="What users' jobs may do.", no_args_is_help=True)

GRANT_COLUMNS: Final = ("USER", "ACTION", "GRANTED BY", "CREATED")
User = Annotated[str, typer.Option(help="Whose jobs.", show_default=False)]
Action = Annotated[str, typer.Option(help="For instance tickets:create.", show_default=False)]


@app.command()
def add(
    context: typer.Context, user: User, action: Action, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Let a user's jobs do something."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        grant = here.api.add_grant(user, action)
        if as_json:
            here.screen.document(grant.document())
        else:
            here.screen.line(f"granted: {grant.user} {grant.action}")


@app.command("list")
def list_grants(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(help="Only this user's.", show_default=False)] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """List grants."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        grants = here.api.grants(user)
        if as_json:
            here.screen.documents(grants)
            return
        rows = [
            [grant.user, grant.action, grant.granted_by, here.screen.moment(grant.created_at)] for grant in grants
        ]
        here.screen.table(GRANT_COLUMNS, rows, empty="no grants")


@app.command()
def revoke(
    context: typer.Context, user: User, action: Action, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Let a user's jobs no longer do something."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        here.api.revoke_grant(user, action)
        if as_json:
            here.screen.document({"user": user, "action": action, "revoked": True})
        else:
            here.screen.line(f"revoked: {user} {action}")
