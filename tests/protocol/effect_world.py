"""One tool call of one job: what the ledger, the attempts, the destination and the workflow know of it.

An attempt that stands still is frozen; nothing has to move next. Time is the order of things, and one event
besides: `settled` says that since `sent_at` the attempt's time limit and the landing horizon have passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agentjobs.domain.effects import EffectClass, EffectOutcome, EffectState
from agentjobs.domain.states import FINAL, JobState
from tests.protocol.names import Place
from tests.protocol.protections import Protection

OWN = (EffectClass.TRANSACTIONAL, EffectClass.READ_ONLY)
"""Of these nothing is ever in doubt that matters."""


class Call(StrEnum):
    """Where an attempt's request to the destination is."""

    NONE = "none"
    FLYING = "flying"
    LANDED = "landed"


class Flow(StrEnum):
    """What the workflow is at."""

    WAITS = "waits for the tool call"
    UNDOES = "undoes it"
    ENDS = "records the end"
    RESTS = "is over, or waits for a person"


class Undo(StrEnum):
    """How far the one attempt of the undo has come."""

    BEGINS = "begins"
    ABANDONED = "has given up what certainly was not done"
    ASKS = "asks the destination"
    GIVES_UP = "was told that it is not there"
    ACTS = "has a receipt to undo"
    ACTED = "has undone it there"


class Row(NamedTuple):
    """The effect in the ledger."""

    state: EffectState | None = None
    in_doubt: bool = False
    sent: int = 0
    """Which sending `sent_at` speaks of."""

    sent_before: int = 0
    """How many attempts had been started by then."""

    settled: bool = False
    other: bool = False
    """Whether it was begun with the other arguments."""


class Attempt(NamedTuple):
    """One try, and what its begin told it."""

    place: Place = Place.NOT_STARTED
    open: bool = False
    """Whether its row in `attempts` says `running`."""

    in_doubt: bool = False
    sent: int = 0
    settled: bool = False
    late: bool = False
    """Whether its own time limit has passed."""

    lost: bool = False
    call: Call = Call.NONE
    key: int = 0
    """Of the destination's keys: another one after each `again`."""

    counted: bool = False
    other: bool = False


class World(NamedTuple):
    """Everything."""

    attempts: tuple[Attempt, ...]
    row: Row = Row()
    landed: tuple[int, ...] = (0, 0)
    """How many objects the destination has made under each of its keys."""

    taken_back: tuple[bool, ...] = (False, False)
    key: int = 0
    again: int = 0
    """How often a person said `again`."""

    lock: int | None = None
    """Whose transaction holds the effect's row."""

    job: JobState = JobState.RUNNING
    cancel_asked: bool = False
    """In the ledger."""

    undoing: bool = False
    """In the ledger: an undo has said that no step begins any more."""

    goal: JobState = JobState.SUCCEEDED
    flow: Flow = Flow.WAITS
    current: int = -1
    """The attempt that Temporal listens to."""

    out: bool = False
    """Whether Temporal waits for it."""

    undo: Undo = Undo.BEGINS
    undo_sent: int = 0
    undo_settled: bool = False
    told: EffectOutcome | None = None
    """What the job's result says of the effect."""

    redrives: int = 0
    wasted: bool = False
    """A call was begun although its receipt was stored."""

    mixed: bool = False
    """An attempt was given a receipt of other arguments as its own."""

    def with_attempt(self, k: int, attempt: Attempt) -> World:
        """The same with this attempt."""
        return self._replace(attempts=(*self.attempts[:k], _tidy(attempt), *self.attempts[k + 1 :]))


ASKS_WHETHER_LOST = (Place.BEFORE_BEGIN, Place.AFTER_CALL, Place.WRITTEN, Place.IN_TRANSACTION)
_KNOWS_ITS_BEGIN = (Place.AFTER_BEGIN, Place.LOOKED_UP)
_MAY_STILL_SEND = (Place.BEFORE_BEGIN, *_KNOWS_ITS_BEGIN, Place.BEFORE_CALL)


def _tidy(attempt: Attempt) -> Attempt:
    """Without what nobody asks for any more: so that states which differ in nothing else are one."""
    place, in_the_air = attempt.place, attempt.call is Call.FLYING
    if place not in _KNOWS_ITS_BEGIN:
        attempt = attempt._replace(in_doubt=False, sent=0, settled=False)
    if place is not Place.OVER:
        return attempt if place in _MAY_STILL_SEND or in_the_air else attempt._replace(late=False)
    if in_the_air:
        return attempt._replace(open=False, lost=False, other=False)
    return Attempt(place=Place.OVER, counted=attempt.counted)


@dataclass(frozen=True)
class Rules:
    """How large the model is, and what is taken away from it."""

    effect_class: EffectClass
    without: frozenset[Protection] = frozenset()
    attempts: int = 2
    begun: bool = False
    redrives: int = 1
    cancels: bool = True
    other_arguments: bool = False
    """Whether later attempts may come with others, as after a reset with other code."""

    attempt_limit: int | None = None

    def has(self, protection: Protection) -> bool:
        """Whether it is in place."""
        return protection not in self.without

    @property
    def start(self) -> World:
        """A running job whose tool call comes next; or whose first attempt crashed after its begin."""
        world = World(attempts=(Attempt(),) * self.attempts)
        if not self.begun:
            return world
        begun = Row(EffectState.BEGUN, sent=1, sent_before=1)
        return world.with_attempt(0, Attempt(place=Place.OVER))._replace(row=begun, current=0)


def broken(world: World, rules: Rules) -> str | None:
    """The invariant (docs/failure-boundaries.md) that does not hold here."""
    if world.wasted:
        return "I2: a call was made although its receipt was stored"
    if world.mixed:
        return "I2: a receipt was taken for that of other arguments"
    if rules.attempt_limit is not None and sum(one.counted for one in world.attempts) > rules.attempt_limit:
        return "I9: more attempts than the limit"
    if rules.effect_class is EffectClass.READ_ONLY:
        return None
    if sum(world.landed) > 1 + world.again:
        return "I2: the effect was had twice"
    return _untrue(world) if world.job in FINAL else None


def _untrue(world: World) -> str | None:
    taken_back = sum(taken and landed > 0 for taken, landed in zip(world.taken_back, world.landed, strict=True))
    stands = sum(world.landed) - taken_back
    if world.job is JobState.SUCCEEDED and (world.row.state is not EffectState.COMPLETED or stands < 1):
        return "I4: the job succeeded, and its effect is not there"
    if world.told in (EffectOutcome.NOT_DONE, EffectOutcome.UNDONE) and stands > world.again:
        return f"I4: the result says {world.told}, and the effect is there"
    if world.told is EffectOutcome.STAYS and world.goal is JobState.CANCELLED:
        return "I4: the job was cancelled, and its effect was not undone"
    return None


def is_good_end(world: World) -> bool:
    """The job is over, or dead and a person's to decide on."""
    return world.job in FINAL or (world.job is JobState.DEAD and world.flow is Flow.RESTS)
