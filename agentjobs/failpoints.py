"""Named places where a test may kill, raise or hang (AGENTJOBS_FAILPOINTS=NAME=kill|raise|hang[@N],...).

The list of names with the invariant of each is in docs/failure-boundaries.md. Settings refuse the variable
outside the dev stack and tests. Unset, a place costs one attribute look-up.
"""

import asyncio
import os
import signal
from collections import Counter
from enum import StrEnum
from typing import Final

import structlog

from agentjobs.domain.failures import Category, RetryableError
from agentjobs.settings import SettingsError

log = structlog.get_logger()

NAMES: Final = frozenset(
    {
        "submit.before_accept",
        "submit.after_accept",
        "outbox.after_claim",
        "outbox.after_start",
        "effect.before_begin",
        "effect.after_begin",
        "effect.before_call",
        "effect.after_call",
        "effect.before_complete",
        "effect.after_complete",
        "tool.after_commit",
        "tool.in_transaction",
        "outcome.before_record",
        "outcome.after_record",
    }
)


class Deed(StrEnum):
    """What happens at a failpoint."""

    KILL = "kill"
    RAISE = "raise"
    HANG = "hang"


class FailpointError(RetryableError):
    """Raised by a failpoint, as if something we depend on had failed there."""

    def __init__(self, name: str) -> None:
        super().__init__(Category.UNAVAILABLE, f"the failpoint {name} was set to raise")


class Failpoints:
    """The failpoints of one process."""

    def __init__(self, deeds: dict[str, tuple[Deed, int | None]] | None = None) -> None:
        self._deeds = deeds or {}
        self._passed: Counter[str] = Counter()

    @classmethod
    def parse(cls, setting: str) -> "Failpoints":
        """From the variable's text. Raises SettingsError for an unknown name or deed."""
        return cls(dict(_parse_one(item.strip()) for item in setting.split(",") if item.strip()))

    async def reach(self, name: str) -> None:
        """Do what was asked for here, if anything was."""
        if not self._deeds or name not in self._deeds:
            return
        deed, only = self._deeds[name]
        self._passed[name] += 1
        if only is not None and self._passed[name] != only:
            return
        log.warning("failpoint_fired", failpoint=name, deed=deed, passed=self._passed[name])
        await _do(deed, name)


def _parse_one(item: str) -> tuple[str, tuple[Deed, int | None]]:
    name, _, rest = item.partition("=")
    deed, _, only = rest.partition("@")
    if name not in NAMES:
        raise SettingsError(f"AGENTJOBS_FAILPOINTS: there is no failpoint {name!r}")
    try:
        return name, (Deed(deed), int(only) if only else None)
    except ValueError:
        raise SettingsError(
            f"AGENTJOBS_FAILPOINTS: {name} takes kill, raise or hang, with @N for the N-th time only"
        ) from None


async def _do(deed: Deed, name: str) -> None:
    match deed:
        case Deed.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Deed.RAISE:
            raise FailpointError(name)
        case Deed.HANG:
            await asyncio.sleep(3600)
