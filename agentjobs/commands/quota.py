"""Commands about quotas: show, and (for the first admin key) set."""

from typing import Annotated

import typer

from agentjobs.commands.answers import InUse, Quota
from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.place import Door

app = typer.Typer(help="What a tenant and its users may have at once.", no_args_is_help=True)

WORDS = "N|none|default"

OfTenant = Annotated[str | None, typer.Option(help="Default: your own.", show_default=False)]


@app.command()
def show(
    context: typer.Context, tenant: OfTenant = None, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Show the limits and what is in use. Another tenant's: with the first admin key only."""
    with opened(context, home, as_json=as_json, door=Door.READING if tenant is None else Door.REVIEW) as here:
        _show(here, here.api.quota(tenant), of_another=tenant is not None)


@app.command("set")
def set_quota(
    context: typer.Context,
    tenant: OfTenant = None,
    in_flight: Annotated[
        str | None,
        typer.Option(metavar=WORDS, help="A user's jobs that are neither over nor dead.", show_default=False),
    ] = None,
    per_minute: Annotated[
        str | None, typer.Option(metavar=WORDS, help="A user's submissions within a minute.", show_default=False)
    ] = None,
    queue_length: Annotated[
        str | None,
        typer.Option(metavar=WORDS, help="The tenant's jobs that wait for their start.", show_default=False),
    ] = None,
    running: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The tenant's jobs started and not over.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Set limits of a tenant. One that is not named stays; none lifts it, default takes the installation's."""
    wanted = {"in_flight": in_flight, "per_minute": per_minute, "queue_length": queue_length}
    given = {name: _number(name, word) for name, word in wanted.items() if word is not None}
    if not given and running is None:
        raise WrongUsage("name a limit to set: --in-flight, --per-minute, --queue-length or --running")
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        now = here.api.quota(tenant)
        limits = {**now.own.model_dump(include=set(wanted)), **given, "running": running or now.running.limit}
        _show(here, here.api.set_quota(tenant, limits), of_another=tenant is not None)


def _show(here: Opened, quota: Quota, *, of_another: bool) -> None:
    if here.screen.as_json:
        here.screen.document(quota.document())
        return
    here.screen.facts(
        [
            ("tenant", quota.tenant),
            ("in flight", _of_a_user(quota.in_flight, None if of_another else quota.user)),
            ("per minute", _of_a_user(quota.per_minute, None if of_another else quota.user)),
            ("queue length", _words(quota.queue_length, "of the tenant")),
            ("running", _words(quota.running, "of the tenant")),
        ]
    )


def _of_a_user(use: InUse, user: str | None) -> str:
    """What a user has is counted of the key's own: of another tenant's users it says nothing."""
    return f"{_limit(use)} for each user" if user is None else _words(use, f"of {user}")


def _words(use: InUse, whose: str) -> str:
    return f"{_limit(use)}, {use.in_use} {whose}"


def _limit(use: InUse) -> str:
    return "no limit" if use.limit is None else f"limit {use.limit}"


def _number(name: str, word: str) -> int | None:
    match word.lower():
        case "none":
            return 0
        case "default":
            return None
        case number if number.isascii() and number.isdecimal() and len(number) < 10 and int(number) > 0:
            return int(number)
    raise WrongUsage(f"--{name.replace('_', '-')} takes a whole number, none for no limit, or default")
