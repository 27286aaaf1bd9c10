"""Effects: what the outside can notice, and what a later attempt does when an earlier one left a doubt.

An effect is begun in the ledger, done, and completed in the ledger. An attempt that finds it begun by
somebody else does not know whether it was done: it is in doubt, and the tool's declared class decides.
"""

from enum import StrEnum
from typing import assert_never


class EffectClass(StrEnum):
    """What is known about repeating an effect. A tool that declares none is refused by the registry."""

    READ_ONLY = "read_only"
    """Nothing outside changes (a search, a model call): do it again. It may cost money, so replies are stored."""

    TRANSACTIONAL = "transactional"
    """It is in our own database and commits together with its effect row: never in doubt."""

    IDEMPOTENT = "idempotent"
    """The destination honours our key: send again with the same key."""

    RECONCILABLE = "reconcilable"
    """The destination can be asked what became of our key: look it up, adopt it, or send."""

    UNSAFE = "unsafe"
    """Neither: a person decides."""


class EffectState(StrEnum):
    """Where an effect stands in the ledger."""

    BEGUN = "begun"
    """Intended, and perhaps done: whoever finds it so resolves the doubt."""

    RELEASED = "released"
    """Begun, and certainly not done: the next attempt starts afresh."""

    COMPLETED = "completed"
    """Done, with its receipt stored."""

    ABANDONED = "abandoned"
    """Given up before it was done; a late attempt can no longer complete it."""

    UNDONE = "undone"
    """Done, and later compensated."""


class EffectOutcome(StrEnum):
    """What is true of an effect once its job has ended."""

    DONE = "done"
    """It was wanted, and is there."""

    UNDONE = "undone"
    """It was there, and was compensated."""

    STAYS = "stays"
    """The job was given up, and the effect is there all the same."""

    IN_DOUBT = "in_doubt"
    """It may be there: nobody could find out."""

    NOT_DONE = "not_done"
    """It never happened, and cannot happen any more."""


class StaysBecause(StrEnum):
    """Why an effect of a job that was given up is there all the same."""

    NO_UNDO_DECLARED = "no_undo_declared"
    """Its tool has no undo."""

    UNDO_GIVEN_UP = "undo_given_up"
    """Its undo failed for good, and a person gave it up."""


class EffectKind(StrEnum):
    """What an effect is to a job."""

    MODEL = "model"
    TOOL = "tool"
    UNDO = "undo"


class Resolution(StrEnum):
    """What the executor does with an effect that it has just begun."""

    EXECUTE = "execute"
    LOOK_UP_FIRST = "look_up_first"
    ASK_A_PERSON = "ask_a_person"


def resolve(effect_class: EffectClass, *, in_doubt: bool) -> Resolution:
    """Decide by the declared class, never by hope."""
    if not in_doubt:
        return Resolution.EXECUTE
    match effect_class:
        case EffectClass.READ_ONLY | EffectClass.TRANSACTIONAL | EffectClass.IDEMPOTENT:
            return Resolution.EXECUTE
        case EffectClass.RECONCILABLE:
            return Resolution.LOOK_UP_FIRST
        case EffectClass.UNSAFE:
            return Resolution.ASK_A_PERSON
        case _:
            assert_never(effect_class)


def seconds_until_settled(attempt_limit: float, landing_horizon: float, since_sent: float) -> float:
    """How long "the destination does not have it" may still become "it does", in seconds; 0 when it is certain.

    An attempt sends nothing after its own time limit, and what it has sent by then lands within the horizon.
    """
    return max(attempt_limit + landing_horizon - since_sent, 0.0)
