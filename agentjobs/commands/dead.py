"""Commands about dead letters, for people who may review: list, show, redrive, discard, report."""

from enum import StrEnum
from typing import Annotated

import typer

from agentjobs.commands.answers import DeadLetter
from agentjobs.commands.dead_lines import (
    DEAD_COLUMNS,
    SPENT_COLUMNS,
    dead_facts,
    dead_row,
    spent_row,
)
from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.commands.report_lines import REPORT_COLUMNS, report_facts, report_rows
from agentjobs.domain.failures import Category

app = typer.Typer(help="Jobs that cannot go on by themselves.", no_args_is_help=True)

LetterId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the dead letter: its job's.", show_default=False)
]
Reason = Annotated[Category | None, typer.Option(help="Only this reason.", show_default=False)]
Note = Annotated[str, typer.Option(help="Why; kept with the decision.", show_default=False)]


class Policy(StrEnum):
    """Under which version of the agent a redriven job goes on."""

    ORIGINAL = "original"
    CURRENT = "current"


@app.command("list")
def list_dead(
    context: typer.Context,
    reason: Reason = None,
    agent: Annotated[str | None, typer.Option(help="Only jobs of this agent.", show_default=False)] = None,
    limit: Limit = 50,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest first."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letters, cursor = here.api.dead_letters(None if show_all else limit, {"reason": reason, "agent": agent})
        if as_json:
            here.screen.documents(letters, cursor)
            return
        rows = [dead_row(letter, here.screen) for letter in letters]
        here.screen.table(DEAD_COLUMNS, rows, empty="no dead letters")
        here.screen.tell_more(cursor)


@app.command()
def show(context: typer.Context, letter_id: LetterId, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Show one dead letter with its input. Who has read it is noted."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letter = here.api.dead_letter(letter_id)
        if as_json:
            here.screen.document(letter.document())
        else:
            here.screen.facts(dead_facts(letter))
            _show_spent(here, letter)


@app.command()
def redrive(
    context: typer.Context,
    letter_id: LetterId,
    note: Note,
    policy: Annotated[
        Policy, typer.Option(help="The agent's version: the job's own, or today's.")
    ] = Policy.ORIGINAL,
    again: Annotated[
        bool, typer.Option("--again", help="Effects in doubt are to be had once more: you have looked.")
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(
            "--input", help="The request as it should have been. What is done stays.", show_default=False
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="LIMIT=N", help="Raise tokens, usd or steps of the job.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Let the job go on from where it died; what is done is not repeated."""
    changes: dict[str, object] = {} if text is None else {"input": {"text": text}}
    changes |= {"budget": dict(map(_limit, budget))} if budget else {}
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letter = here.api.redrive(letter_id, note, policy, again=again, changes=changes)
        _show_decided(here, letter, f"redrive asked: `python starter.py status {letter.id}` shows how it goes on")


def _limit(given: str) -> tuple[str, int | str]:
    name, _, amount = given.partition("=")
    if name in {"tokens", "steps"} and amount.isascii() and amount.isdigit():
        return name, int(amount)
    if name == "usd" and amount:
        return name, amount
    raise WrongUsage("name a limit and how much: --budget tokens=100000, --budget usd=1.50 or --budget steps=8")


@app.command()
def discard(
    context: typer.Context, letter_id: LetterId, note: Note, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Give the job up; what it did is undone where that is possible."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letter = here.api.discard(letter_id, note)
        _show_decided(here, letter, f"discard asked: {letter.id} is {letter.state}")


@app.command()
def report(
    context: typer.Context,
    window: Annotated[
        int, typer.Option(metavar="HOURS", min=1, max=2160, help="What came and went within so many hours.")
    ] = 24,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Count dead letters by reason, agent, version and age; chart what came and went."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        counted = here.api.report(window)
        if as_json:
            here.screen.document(counted.document())
            return
        here.screen.table(REPORT_COLUMNS, report_rows(counted, here.screen), empty="no open dead letters")
        here.screen.facts(report_facts(counted, here.screen))


def _show_spent(here: Opened, letter: DeadLetter) -> None:
    if letter.spent:
        here.screen.line("")
        here.screen.table(SPENT_COLUMNS, [spent_row(spent) for spent in letter.spent], empty="")


def _show_decided(here: Opened, letter: DeadLetter, words: str) -> None:
    if here.screen.as_json:
        here.screen.document(letter.document())
    else:
        here.screen.line(words)
