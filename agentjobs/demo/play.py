"""The demonstration from curtain to curtain: a stack of its own on free ports, the story, and nothing left."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console

from agentjobs.commands.dev_tenant import prepare_dev_tenant
from agentjobs.commands.errors import CommandError
from agentjobs.demo.story import Story, StoryBroken
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.errors import StackError
from agentjobs.stack.options import StackOptions
from agentjobs.stack.ports import free_ports
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.stack.stack import Stack, running_stack

# The worker stops for good right after its first ticket is committed, and before it can tell anybody: the moment
# at which a crash is worst. Then the story kills it.
FREEZE_AFTER_THE_FIRST_TICKET = "tool.after_commit=hang@1"


async def play(home: Path, *, keep: bool) -> int:
    """0 when everything held that the story claims; 1 with one line when not. Ctrl-C ends it cleanly with 130."""
    console = Console(highlight=False, markup=False, emoji=False)
    telling = asyncio.ensure_future(_told(console, home, keep=keep))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, telling.cancel)
    try:
        await telling
    except asyncio.CancelledError:
        console.print("\nStopped.")
        return 0 if keep else 130
    except (StackError, StoryBroken, CommandError) as error:
        console.print(f"\nThe demo failed: {error}", style="bold red")
        return 1
    return 0


async def _told(console: Console, home: Path, *, keep: bool) -> None:
    began = monotonic()
    console.print("Starting PostgreSQL, Temporal, the API, the relay and a worker, all on 127.0.0.1 ...")
    async with _own_stack(home) as stack, _ledger(stack) as ledger:
        await Story(console, stack, ledger).tell()
        console.print(f"\nAll of it took {monotonic() - began:.0f} s.")
        if keep:
            console.print(f"The stack stays up: {stack.info.temporal_ui} - Ctrl-C ends it.")
            await asyncio.get_running_loop().create_future()
        console.print("Stopping everything ...")
    console.print("Gone: no process, port or file is left. To keep a stack running: python starter.py dev")


@asynccontextmanager
async def _own_stack(home: Path) -> AsyncIterator[Stack]:
    postgres, temporal, ui, api = free_ports(4)
    options = StackOptions(
        home=home,
        postgres_port=postgres,
        temporal_port=temporal,
        ui_port=ui,
        api_port=api,
        # One person submits all of it at once.
        extra_env={"AGENTJOBS_FAILPOINTS": FREEZE_AFTER_THE_FIRST_TICKET, "AGENTJOBS_QUOTA_IN_FLIGHT": "20"},
    )
    made = _made_anew(home)
    try:
        async with running_stack(options, prepare_dev_tenant) as stack:
            yield stack
    finally:
        EmbeddedPostgres(home, 1).remove()
        shutil.rmtree(home)
        for folder in made:
            folder.rmdir()


def _made_anew(home: Path) -> list[Path]:
    """Make the home, and return the folders above it that had to be made, innermost first.

    At the end all of it is removed, so what was there before is refused: it may be somebody's data.
    """
    missing = [folder for folder in home.absolute().parents if not folder.exists()]
    try:
        home.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise StoryBroken(f"{home} is there already: name another --home, or remove it yourself") from None
    except OSError as error:
        raise StoryBroken(f"{home} cannot be made ({error.strerror}): name another --home") from None
    return missing


@asynccontextmanager
async def _ledger(stack: Stack) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(stack.info.database, size=2, application_name="agentjobs-demo")
    try:
        yield ledger
    finally:
        await ledger.close()
