"""Commands about API keys, for admins: create, list, revoke."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, opened
from agentjobs.commands.place import Door
from agentjobs.commands.words import time_of

app = typer.Typer(help="API keys of the tenant.", no_args_is_help=True)

KEY_COLUMNS: Final = ("ID", "TENANT", "USER", "ROLES", "CREATED", "EXPIRES", "REVOKED")


class Role(StrEnum):
    """What a key may do."""

    SUBMIT = "submit"
    REVIEW = "review"
    ADMIN = "admin"


@app.command()
def create(
    context: typer.Context,
    user: Annotated[str, typer.Option(help="Whose key it is.", show_default=False)],
    tenant: Annotated[str | None, typer.Option(help="Default: your own.", show_default=False)] = None,
    role: Annotated[list[Role] | None, typer.Option(help="May be given several times.")] = None,
    expires_in: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Default: never.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is printed this once and kept nowhere. Without --role it may submit."""
    wanted: dict[str, object] = {"user": user, "roles": role or [Role.SUBMIT]}
    if tenant is not None:
        wanted["tenant"] = tenant
    if expires_in is not None:
        wanted["expires_in_seconds"] = expires_in
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        key = here.api.create_key(wanted)
        if as_json:
            here.screen.document(key.document())
            return
        here.screen.tell(
            f"key {key.id} of {key.tenant}/{key.user} ({', '.join(key.roles)}); it is shown only now:"
        )
        here.screen.line(key.key or "")


@app.command("list")
def list_keys(context: typer.Context, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """List the keys, also the revoked ones."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        keys = here.api.keys()
        if as_json:
            here.screen.documents(keys)
            return
        moment = here.screen.moment
        rows = [
            [
                key.id,
                key.tenant,
                key.user,
                ",".join(key.roles),
                moment(key.created_at),
                key.expires_at and time_of(key.expires_at),
                moment(key.revoked_at),
            ]
            for key in keys
        ]
        here.screen.table(KEY_COLUMNS, rows, empty="no keys")


@app.command()
def revoke(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, not the key.", show_default=False)],
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Make a key useless, at once and for ever."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        here.api.revoke_key(key_id)
        if as_json:
            here.screen.document({"id": key_id, "revoked": True})
        else:
            here.screen.line(f"revoked: {key_id}")
