"""The command `dev`: the whole stack on this machine, until Ctrl-C."""

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentjobs.commands.errors import WrongUsage
from agentjobs.commands.opening import DEFAULT_HOME, Home

if TYPE_CHECKING:
    from agentjobs.stack.info import StackInfo

app = typer.Typer()

Port = Annotated[int, typer.Option(min=1, max=65535, metavar="N")]


@app.command()
def dev(
    home: Home = DEFAULT_HOME,
    api_port: Port = 8080,
    temporal_port: Port = 7233,
    ui_port: Port = 8233,
    postgres_port: Port = 55432,
    workers: Annotated[int, typer.Option(min=0, max=64, metavar="N")] = 1,
    log_level: Annotated[str, typer.Option(envvar="AGENTJOBS_LOG_LEVEL", hidden=True)] = "INFO",
) -> None:
    """Run PostgreSQL, Temporal, the API, the relay and workers here. Ctrl-C stops all of it."""
    # Imported here: the other commands need none of it and start in a third of the time.
    import asyncio

    from agentjobs.commands.dev_tenant import prepare_dev_tenant
    from agentjobs.logs import configure_logging
    from agentjobs.stack.options import StackOptions
    from agentjobs.stack.run import run_stack

    try:
        configure_logging(log_level)
    except ValueError:
        raise WrongUsage(f"AGENTJOBS_LOG_LEVEL: no such level: {log_level}") from None
    options = StackOptions(
        home=home,
        api_port=api_port,
        temporal_port=temporal_port,
        ui_port=ui_port,
        postgres_port=postgres_port,
        workers=workers,
    )
    raise typer.Exit(asyncio.run(run_stack(options, prepare_dev_tenant, partial(_tell_ready, home))))


def _tell_ready(home: Path, info: "StackInfo") -> None:
    """Where everything is; the keys stay in stack.json."""
    elsewhere = "" if home == DEFAULT_HOME else f"AGENTJOBS_HOME={shlex.quote(str(home))} "
    typer.echo(f"API          {info.api}")
    typer.echo(f"Console      {info.console}")
    typer.echo(f"Temporal UI  {info.temporal_ui}")
    typer.echo(f'Now, in another terminal: {elsewhere}python starter.py submit "I was charged twice" --wait')
