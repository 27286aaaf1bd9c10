"""What the commands reach beyond this process. Tests pass their own as the context object of the command line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import SystemRandom
from threading import Event
from typing import TYPE_CHECKING

import typer

from agentjobs.commands.errors import Interrupted

if TYPE_CHECKING:
    import httpx


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Outside:
    """The network, the clock and chance."""

    transport: "httpx.BaseTransport | None" = None
    sleep: Callable[[float], object] | None = None
    now: Callable[[], datetime] = _now
    chance: Callable[[], float] = SystemRandom().random
    stopped: Event = field(default_factory=Event)

    def pause(self, seconds: float) -> None:
        """Wait. Ctrl-C reaches the main thread only, so the others learn of it here, by `stopped`."""
        if not self.stopped.is_set():
            (self.sleep or self.stopped.wait)(seconds)
        if self.stopped.is_set():
            raise Interrupted("interrupted")


def outside_of(context: typer.Context) -> Outside:
    """What this run was given; the real thing unless a test says otherwise."""
    return context.find_object(Outside) or Outside()
