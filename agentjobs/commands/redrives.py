"""Commands about bulk redrives, for people who may review: start, list, show, pause, resume, cancel, approve."""

import uuid
from datetime import UTC, datetime
from typing import Annotated

import typer

from agentjobs.commands.dead import Note, Policy, Reason
from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, All, AsJson, Home, Limit, Opened, opened
from agentjobs.commands.place import Door
from agentjobs.commands.reading import check_key
from agentjobs.commands.redrive_answers import BulkRedrive, RedriveTried
from agentjobs.commands.redrive_lines import (
    DOUBT_COLUMNS,
    KIND_COLUMNS,
    REDRIVE_COLUMNS,
    doubt_row,
    progress_words,
    redrive_facts,
    redrive_row,
    tried_lines,
)
from agentjobs.domain.bulk import RedriveState

app = typer.Typer(help="Redrive many dead letters, a few first.", no_args_is_help=True)

RedriveId = Annotated[
    str, typer.Argument(metavar="ID", help="The id that `redrives start` gave.", show_default=False)
]


Agent = Annotated[str | None, typer.Option(help="Only jobs of this agent.", show_default=False)]
Version = Annotated[str | None, typer.Option(help="Only jobs of this version of their agent.", show_default=False)]
DiedBefore = Annotated[
    str | None, typer.Option(metavar="TIME", help="ISO 8601, UTC unless it says.", show_default=False)
]
DiedAfter = Annotated[str | None, typer.Option(metavar="TIME", help="The same; inclusive.", show_default=False)]
Letters = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="This letter; may be repeated.", show_default=False)
]
Every = Annotated[bool, typer.Option("--all", help="All open letters.")]
WhyStarted = Annotated[str | None, typer.Option(help="Why; kept with every letter.", show_default=False)]
WhichPolicy = Annotated[Policy, typer.Option(help="The agent's version: the job's own, or today's.")]
Again = Annotated[bool, typer.Option("--again", help="Effects in doubt are to be had once more: you have looked.")]
Canary = Annotated[int, typer.Option(help="So many first; any death of these stops it.", metavar="N")]
Share = Annotated[float, typer.Option(help="Then this share of all.")]
Rate = Annotated[float, typer.Option(help="Letters a second.")]
FailureLimit = Annotated[float, typer.Option(help="A larger share of failures stops it.")]
VerdictSeconds = Annotated[int, typer.Option(help="How long a verdict is awaited.", metavar="N")]
Key = Annotated[str | None, typer.Option(help="Under one key, one bulk redrive.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]


@app.command()
def start(  # noqa: PLR0913, PLR0917 - one for each option, given by name
    context: typer.Context,
    reason: Reason = None,
    agent: Agent = None,
    policy_version: Version = None,
    died_before: DiedBefore = None,
    died_after: DiedAfter = None,
    letter: Letters = None,
    every: Every = False,
    note: WhyStarted = None,
    policy: WhichPolicy = Policy.ORIGINAL,
    again: Again = False,
    canary: Canary = 1,
    share: Share = 0.1,
    rate: Rate = 1.0,
    failure_limit: FailureLimit = 0.2,
    verdict_seconds: VerdictSeconds = 600,
    key: Key = None,
    dry_run: DryRun = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Redrive the dead letters that the options name: a few, then a share, then the rest. Stops by itself."""
    died = {"died_before": _moment(died_before), "died_after": _moment(died_after)}
    wanted = _given(reason=reason, agent=agent, policy_version=policy_version, ids=letter or None, **died)
    _check(wanted, every=every, note=note, dry_run=dry_run, key=key)
    body = _given(
        filter=wanted,
        note=note,
        policy=policy.value,
        again=again,
        canary=canary,
        share=share,
        rate_per_second=rate,
        failure_limit=failure_limit,
        verdict_seconds=verdict_seconds,
    )
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        if dry_run:
            _show_tried(here, here.api.try_redrive(body))
        else:
            _show_started(here, here.api.start_redrive(body, key or str(uuid.uuid4())))


@app.command("list")
def list_redrives(
    context: typer.Context,
    state: Annotated[
        RedriveState | None, typer.Option(help="Only those in this state.", show_default=False)
    ] = None,
    limit: Limit = 50,
    show_all: All = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """List bulk redrives, the newest first."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        found, cursor = here.api.bulk_redrives(None if show_all else limit, {"state": state})
        if as_json:
            here.screen.documents(found, cursor)
            return
        rows = [redrive_row(redrive, here.screen) for redrive in found]
        here.screen.table(REDRIVE_COLUMNS, rows, empty="no bulk redrives")
        here.screen.tell_more(cursor)


@app.command()
def show(
    context: typer.Context, redrive_id: RedriveId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Show how far a bulk redrive has come, and why it stopped."""
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        redrive = here.api.bulk_redrive(redrive_id)
        if as_json:
            here.screen.document(redrive.document())
            return
        here.screen.facts(redrive_facts(redrive))
        here.screen.line(progress_words(redrive, here.screen.bar_character))


@app.command()
def pause(
    context: typer.Context, redrive_id: RedriveId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Touch no further letter for now."""
    _tell(context, redrive_id, "pause", home, as_json=as_json)


@app.command()
def resume(
    context: typer.Context, redrive_id: RedriveId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Go on where it was paused."""
    _tell(context, redrive_id, "resume", home, as_json=as_json)


@app.command()
def cancel(
    context: typer.Context, redrive_id: RedriveId, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Touch no further letter for good; those that wait stay open."""
    _tell(context, redrive_id, "cancel", home, as_json=as_json)


@app.command()
def approve(
    context: typer.Context, redrive_id: RedriveId, note: Note, home: Home = DEFAULT_HOME, as_json: AsJson = False
) -> None:
    """Let a large bulk redrive of somebody else begin."""
    _tell(context, redrive_id, "approve", home, as_json=as_json, body={"note": note})


def _tell(
    context: typer.Context,
    redrive_id: str,
    word: str,
    home: Home,
    *,
    as_json: bool,
    body: dict[str, object] | None = None,
) -> None:
    with opened(context, home, as_json=as_json, door=Door.REVIEW) as here:
        redrive = here.api.tell_redrive(redrive_id, word, body)
        if as_json:
            here.screen.document(redrive.document())
        else:
            here.screen.line(f"{redrive.id} is {redrive.state}")
            here.screen.line(progress_words(redrive, here.screen.bar_character))


def _show_started(here: Opened, redrive: BulkRedrive) -> None:
    if here.screen.as_json:
        here.screen.document(redrive.document())
        return
    here.screen.line(f"{redrive.id} {redrive.state}: {redrive.letters} letters")
    if redrive.state == RedriveState.AWAITING_APPROVAL:
        here.screen.tell(f"another reviewer begins it: `python starter.py redrives approve {redrive.id} --note N`")
    else:
        here.screen.tell(f"`python starter.py redrives show {redrive.id}` shows how it goes on")


def _show_tried(here: Opened, tried: RedriveTried) -> None:
    if here.screen.as_json:
        here.screen.document(tried.document())
        return
    kinds = [[kind.reason, kind.count, kind.agent] for kind in tried.by_kind]
    here.screen.table(KIND_COLUMNS, kinds, empty="no letter to redrive")
    if tried.in_doubt:
        here.screen.table(DOUBT_COLUMNS, [doubt_row(doubt) for doubt in tried.in_doubt], empty="")
    for line in tried_lines(tried):
        here.screen.line(line)


def _check(wanted: dict[str, object], *, every: bool, note: str | None, dry_run: bool, key: str | None) -> None:
    if bool(wanted) is every:
        raise WrongUsage("say which letters: --reason, --agent and the like, or else --all")
    if note is None and not dry_run:
        raise WrongUsage("say why with --note; --dry-run needs none")
    if key is not None:
        check_key(key)


def _given(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _moment(given: str | None) -> str | None:
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise WrongUsage(f"no time looks like this; write it so: {datetime.now(UTC):%Y-%m-%dT%H:%MZ}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
