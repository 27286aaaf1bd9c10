"""Commands about the tenant's monthly budget: show, and (for admins) set."""

from typing import Annotated, Final

import typer

from agentjobs.commands.answers import Month
from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.place import Door

app = typer.Typer(help="What the tenant may spend in a month.", no_args_is_help=True)

NO_LIMIT: Final = "none"


@app.command()
def show(context: typer.Context, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Show what the tenant may spend this month (UTC), has spent, and holds back for calls in flight."""
    with opened(context, home, as_json=as_json, door=Door.READING) as here:
        _show(here, here.api.budget())


@app.command("set")
def set_budget(
    context: typer.Context,
    tokens: Annotated[
        str | None, typer.Option(metavar="N|none", help="Tokens a month, in and out.", show_default=False)
    ] = None,
    usd: Annotated[
        str | None, typer.Option(metavar="X|none", help="US dollars a month.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Set the monthly budget. A limit that is not named stays; none lifts it."""
    if tokens is None and usd is None:
        raise WrongUsage("name a limit to set: --tokens N, --usd X, or none for no limit")
    wanted_tokens = _tokens(tokens)
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        limits = here.api.budget().limits if tokens is None or usd is None else None
        month = here.api.set_budget(
            tokens=limits.tokens if limits and tokens is None else wanted_tokens,
            usd=limits.usd if limits and usd is None else _or_no_limit(usd),
        )
        _show(here, month)


def _show(here: Opened, month: Month) -> None:
    if here.screen.as_json:
        here.screen.document(month.document())
        return
    here.screen.facts(
        [
            ("month", month.month),
            ("tokens", _words(month.limits.tokens, month.spent.tokens, month.held_back.tokens)),
            ("USD", _words(month.limits.usd, month.spent.usd, month.held_back.usd)),
        ]
    )


def _words(limit: object, spent: object, held_back: object) -> str:
    told = "no limit" if limit is None else f"limit {limit}"
    return f"{told}, {spent or 0} spent, {held_back or 0} held back"


def _tokens(given: str | None) -> int | None:
    wanted = _or_no_limit(given)
    if wanted is None:
        return None
    if not (wanted.isascii() and wanted.isdecimal() and len(wanted) <= 16):
        raise WrongUsage("--tokens takes a whole number, or none for no limit")
    return int(wanted)


def _or_no_limit(given: str | None) -> str | None:
    return None if given is None or given.lower() == NO_LIMIT else given
