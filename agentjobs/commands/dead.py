"""Commands about dead letters, for people who may review: list, show, redrive, discard, report."""

from enum import StrEnum
from typing import Annotated

import typer

from agentjobs.commands.answers import DeadLetter
from agentjobs.commands.dead_lines import (
    DEAD_COLUMNS,
    REPORT_COLUMNS,
    SPENT_COLUMNS,
    by_state_words,
    dead_facts,
    dead_row,
    report_rows,
    spent_row,
)
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, Opened, opened
from agentjobs.commands.place import Door

app = typer.Typer(help="Jobs that cannot go on by themselves.", no_args_is_help=True)

LetterId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the dead letter: its job's.", show_default=False)
]
Note = Annotated[str, typer.Option(help="Why; kept with the decision.", show_default=False)]


class Policy(StrEnum):
    """Under which version of the agent a redriven job goes on."""

    ORIGINAL = "original"
    CURRENT = "current"


@app.command("list")
def list_dead(
    context: typer.Context,
    reason: Annotated[str | None, typer.Option(help="Only this reason.", show_default=False)] = None,
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
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Let the job go on from where it died; what is done is not repeated."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letter = here.api.redrive(letter_id, note, policy, again=again)
        _show_decided(here, letter, f"redrive asked: `python starter.py status {letter.id}` shows how it goes on")


@app.command()
def discard(
    context: typer.Context, letter_id: LetterId, note: Note, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Give the job up; what it did is undone where that is possible."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        letter = here.api.discard(letter_id, note)
        _show_decided(here, letter, f"discard asked: {letter.id} is {letter.state}")


@app.command()
def report(context: typer.Context, home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Count dead letters by reason, agent and version."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        counted = here.api.report()
        if as_json:
            here.screen.document(counted.document())
            return
        here.screen.table(REPORT_COLUMNS, report_rows(counted, here.screen), empty="no open dead letters")
        if counted.by_state:
            here.screen.line(by_state_words(counted))


def _show_spent(here: Opened, letter: DeadLetter) -> None:
    if letter.spent:
        here.screen.line("")
        here.screen.table(SPENT_COLUMNS, [spent_row(spent) for spent in letter.spent], empty="")


def _show_decided(here: Opened, letter: DeadLetter, words: str) -> None:
    if here.screen.as_json:
        here.screen.document(letter.document())
    else:
        here.screen.line(words)
