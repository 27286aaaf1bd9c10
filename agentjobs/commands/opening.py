"""What nearly every command begins with: find the API, open a client, open a screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agentjobs.commands.outside import Outside, outside_of
from agentjobs.commands.place import Door, find_place
from agentjobs.commands.render import Screen

if TYPE_CHECKING:
    from agentjobs.commands.client import Client

DEFAULT_HOME: Final = Path(".agentjobs")

Home = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="AGENTJOBS_HOME",
        help="The home of the dev stack, where its stack.json is.",
        metavar="DIR",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, and nothing else there.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most so many.", metavar="N")]
All = Annotated[bool, typer.Option("--all", help="Show all there are.")]


@dataclass(frozen=True)
class Opened:
    """What a command works with."""

    api: "Client"
    screen: Screen
    outside: Outside


@contextmanager
def opened(context: typer.Context, home: Path, *, as_json: bool, door: Door = Door.JOBS) -> Iterator[Opened]:
    """The API by the key that the door needs, for the length of the block."""
    # Imported here: `--help` and wrong usage shall not wait for the network library and the settings.
    from agentjobs.commands.client import Client
    from agentjobs.settings import ClientSettings

    outside = outside_of(context)
    screen = Screen(outside.now, as_json=as_json)
    place = find_place(home, ClientSettings(), door)
    with Client(place, outside, screen.tell) as api:
        yield Opened(api, screen, outside)
