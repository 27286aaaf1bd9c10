"""The command `submit`: one request, or a file of them."""

import uuid
from dataclasses import dataclass
from typing import Annotated

import typer

from agentjobs.commands.answers import Job
from agentjobs.commands.batch import Batch, Outcome
from agentjobs.commands.errors import ApiRefused, ApiUnreachable, CommandError, WrongUsage
from agentjobs.commands.following import Silent, follow
from agentjobs.commands.job_lines import outcome_facts
from agentjobs.commands.jobs import watched
from agentjobs.commands.opening import DEFAULT_HOME, AsJson, Home, Opened, opened
from agentjobs.commands.patience import SUBMITTING, SUBMITTING_MANY
from agentjobs.commands.reading import Line, check_key, lines_of, text_of
from agentjobs.commands.request import JobRequest

app = typer.Typer()


@app.command()
def submit(  # noqa: PLR0913, PLR0917  # each is an option of the command
    context: typer.Context,
    text: Annotated[
        str | None, typer.Argument(help="The request; - reads standard input, @FILE a file.", show_default=False)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="JSONL",
            help='Many: a line each {"text", "key"?, "agent"?}; - is standard input.',
            show_default=False,
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Which agent takes it.", show_default=False)] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Idempotency key: the same key never makes a second job.", show_default=False),
    ] = None,
    deadline: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Give up after.", show_default=False)
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="1..5", help="How urgent.", show_default=False)] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow until it ends; exit code 0 only if it succeeded.")
    ] = False,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Hand in a request. The job's id is printed; the rest is said on stderr."""
    wishes = Wishes(agent, deadline, priority)
    if (text is None) == (file is None):
        raise WrongUsage("give one of: the text, - for standard input, @FILE, or --file JSONL for many")
    if text is not None:
        request, key = wishes.request(text_of(text)), new_key() if key is None else key
        check_key(key)
        with opened(context, home, as_json=as_json) as here:
            _submit_one(here, request, key, wait=wait)
    elif file is not None:
        if key is not None:
            raise WrongUsage('--key is for one request: in a file each line may have its own "key"')
        with opened(context, home, as_json=as_json) as here:
            raise typer.Exit(_submit_many(here, file, wishes, wait=wait))


@dataclass(frozen=True)
class Wishes:
    """What the options ask for every request."""

    agent: str | None
    deadline: int | None
    priority: int | None

    def request(self, text: str, agent: str | None = None) -> JobRequest:
        """The request; a line's own agent goes before the option's."""
        return JobRequest(
            text=text,
            agent=self.agent if agent is None else agent,
            deadline_seconds=self.deadline,
            priority=self.priority,
        )


def new_key() -> str:
    """Made here, so that asking again after a lost answer cannot make a second job."""
    return str(uuid.uuid4())


def _submit_one(here: Opened, request: JobRequest, key: str, *, wait: bool) -> None:
    try:
        job = here.api.submit(request, key, SUBMITTING)
    except (ApiRefused, ApiUnreachable) as error:
        if _may_be_repeated(error):
            error.add_note(f"to repeat it safely, add `--key {key}`: the same key never makes a second job")
        raise
    if not here.screen.as_json:
        here.screen.tell("accepted" if wait else f"accepted; `python starter.py watch {job.id}` follows it")
        here.screen.line(job.id)
    if wait:
        job = _waited_for(here, job)
    if here.screen.as_json:
        here.screen.document(job.document())
    if wait and not job.has_succeeded:
        raise typer.Exit(1)


def _waited_for(here: Opened, job: Job) -> Job:
    try:
        ended = watched(here, job.id, beside=True)
    except CommandError as error:
        error.add_note(f"the job is accepted: `python starter.py watch {job.id}` follows it")
        raise
    here.screen.facts(outcome_facts(ended), beside=True)
    return ended


def _submit_many(here: Opened, file: str, wishes: Wishes, *, wait: bool) -> int:
    def send(line: Line) -> Outcome:
        if line.written is None:
            return Outcome(line.number, wrong=line.wrong)
        key = line.written.key or new_key()
        request = wishes.request(line.written.text, line.written.agent)
        try:
            job = here.api.submit(request, key, SUBMITTING_MANY)
        except CommandError as error:
            return Outcome(line.number, key, error=error)
        return _ended(here, Outcome(line.number, key, job)) if wait else Outcome(line.number, key, job)

    with lines_of(file) as lines:
        return Batch(send, here.screen, here.outside).run(lines)


def _ended(here: Opened, outcome: Outcome) -> Outcome:
    """The outcome once the job has ended."""
    accepted = outcome.job
    if accepted is None:
        return outcome
    try:
        job = follow(here.api, accepted.id, Silent(here.outside))
    except CommandError as error:
        return Outcome(outcome.number, outcome.key, accepted, error=error)
    wrong = None if job.has_succeeded else f"job {job.id} is {job.state}"
    return Outcome(outcome.number, outcome.key, job, wrong=wrong)


def _may_be_repeated(error: ApiRefused | ApiUnreachable) -> bool:
    """Whether the same request may yet be accepted, or already is."""
    return isinstance(error, ApiUnreachable) or error.status in {409, 429} or error.status >= 500
