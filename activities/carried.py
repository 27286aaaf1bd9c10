"""Which step is carried out here: that of the activity itself, or one of the short ones that share an activity."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from temporalio import activity

from agentjobs.tracing.temporal import attempt_of


@dataclass(frozen=True)
class Carried:
    """A step, by its activity's type and id: also where it has no activity of its own."""

    type: str
    id: str


_short: Final[ContextVar[Carried | None]] = ContextVar("agentjobs_short_step", default=None)


def carried() -> Carried:
    """What is carried out now."""
    info = activity.info()
    return _short.get() or Carried(info.activity_type, info.activity_id)


@contextmanager
def carrying(short: Carried) -> Iterator[None]:
    """The block is an attempt of this short step."""
    token = _short.set(short)
    try:
        with attempt_of(short.type, short.id):
            yield
    finally:
        _short.reset(token)
