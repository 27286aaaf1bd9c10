"""The command `demo`: a whole stack, real requests, a crash and a death, and everything gone afterwards."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def demo(
    home: Annotated[Path, typer.Option(help="Where the demo's stack lives until it ends.")] = Path(
        ".agentjobs/demo"
    ),
    keep: Annotated[bool, typer.Option(help="Leave the stack up for a look, until Ctrl-C.")] = False,
) -> None:
    """Run real requests to their tickets on a stack of its own, with a crash and a death on the way."""
    # Imported here: the other commands need none of it.
    from agentjobs.demo.play import play
    from agentjobs.logs import configure_logging

    configure_logging(os.environ.get("AGENTJOBS_LOG_LEVEL", "ERROR"))
    raise typer.Exit(asyncio.run(play(home, keep=keep)))
