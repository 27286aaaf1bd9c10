"""What is explored: the models with everything in place, and with each protection taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agentjobs.domain.effects import EffectClass
from tests.protocol.acceptance_model import (
    A_REQUEST_SENT_TWICE,
    TWO_JOBS_AND_ROOM_FOR_ONE,
    AcceptanceRules,
    acceptance_model,
)
from tests.protocol.death_model import DeathRules, death_model
from tests.protocol.effect_model import effect_model
from tests.protocol.effect_world import Rules
from tests.protocol.explorer import DEAD_END, Model
from tests.protocol.protections import Protection

Build = Callable[[frozenset[Protection]], Model[Any]]

_NO_USER = A_REQUEST_SENT_TWICE._replace(cancels=0)


def effect(effect_class: EffectClass, **bounds: Any) -> Build:
    """One tool call of this class."""
    return lambda without: effect_model(Rules(effect_class, without, **bounds))


def acceptance(start: Any) -> Build:
    """From the request to the end, through the relay."""
    return lambda without: acceptance_model(AcceptanceRules(start, without))


def death(**bounds: Any) -> Build:
    """Deaths, words and redrives."""
    return lambda without: death_model(DeathRules(without, **bounds))


TRANSACTIONAL_CANCELLED = effect(EffectClass.TRANSACTIONAL, redrives=0)
TRANSACTIONAL = effect(EffectClass.TRANSACTIONAL)
READ_ONLY = effect(EffectClass.READ_ONLY, redrives=0)
UNSAFE = effect(EffectClass.UNSAFE)
UNSAFE_CANCELLED = effect(EffectClass.UNSAFE, redrives=0)
UNSAFE_REDRIVEN = effect(EffectClass.UNSAFE, cancels=False)
IDEMPOTENT_CANCELLED = effect(EffectClass.IDEMPOTENT, redrives=0)
IDEMPOTENT_REDRIVEN = effect(EffectClass.IDEMPOTENT, cancels=False)
RECONCILABLE_CANCELLED = effect(EffectClass.RECONCILABLE, redrives=0)
RECONCILABLE_REDRIVEN = effect(EffectClass.RECONCILABLE, cancels=False)
THREE_ATTEMPTS = effect(EffectClass.RECONCILABLE, attempts=3, redrives=0, cancels=False)
TWO_MORE_AFTER_A_CRASH = effect(EffectClass.RECONCILABLE, attempts=3, begun=True, redrives=0, cancels=False)
UNDONE_AFTER_A_CRASH = effect(EffectClass.RECONCILABLE, attempts=2, begun=True)
OTHER_ARGUMENTS = effect(EffectClass.UNSAFE, redrives=0, cancels=False, other_arguments=True)
ONE_MAY_FAIL = effect(EffectClass.UNSAFE, cancels=False, attempt_limit=1)
SENT_TWICE = acceptance(A_REQUEST_SENT_TWICE)
SENT_ONCE = acceptance(A_REQUEST_SENT_TWICE._replace(sends=1))
SENT_TWICE_WITHOUT_USER = acceptance(_NO_USER)
ROOM_FOR_ONE = acceptance(TWO_JOBS_AND_ROOM_FOR_ONE)
DEATHS = death()
DEAD_ONCE = death(dead=True)
DEATHS_WITHOUT_FREEZES = death(freezes=0)
DEATHS_WITHOUT_OPERATOR = death(terminations=0)


@dataclass(frozen=True)
class Whole:
    """A model with everything in place, and how large it is at least."""

    build: Build
    states: int


WHOLE: Final[dict[str, Whole]] = {
    "read_only": Whole(READ_ONLY, 10_000),
    "transactional": Whole(TRANSACTIONAL, 10_000),
    "unsafe, cancelled": Whole(UNSAFE_CANCELLED, 5_000),
    "unsafe, redriven": Whole(UNSAFE_REDRIVEN, 2_000),
    "idempotent, cancelled": Whole(IDEMPOTENT_CANCELLED, 10_000),
    "idempotent, redriven": Whole(IDEMPOTENT_REDRIVEN, 10_000),
    "reconcilable, cancelled": Whole(RECONCILABLE_CANCELLED, 30_000),
    "reconcilable, redriven": Whole(RECONCILABLE_REDRIVEN, 10_000),
    "reconcilable, two more attempts after a crash": Whole(TWO_MORE_AFTER_A_CRASH, 2_000),
    "reconcilable, cancelled or redriven after a crash": Whole(UNDONE_AFTER_A_CRASH, 5_000),
    "other arguments after a reset": Whole(OTHER_ARGUMENTS, 1_000),
    "one attempt may fail": Whole(ONE_MAY_FAIL, 2_000),
    "a request sent once, and a user who cancels": Whole(SENT_ONCE, 2_000),
    "a request sent twice, and no user who cancels": Whole(SENT_TWICE_WITHOUT_USER, 4_000),
    "two jobs and room for one": Whole(ROOM_FOR_ONE, 3_000),
    "deaths, and no record that freezes": Whole(DEATHS_WITHOUT_FREEZES, 5_000),
    "deaths, and no operator who terminates": Whole(DEATHS_WITHOUT_OPERATOR, 5_000),
    "a dead job": Whole(DEAD_ONCE, 10_000),
}
"""Of which every test run explores all."""

LARGER: Final[dict[str, Whole]] = {
    "unsafe, cancelled and redriven": Whole(UNSAFE, 30_000),
    "idempotent, cancelled and redriven": Whole(effect(EffectClass.IDEMPOTENT), 50_000),
    "reconcilable, cancelled and redriven": Whole(effect(EffectClass.RECONCILABLE), 100_000),
    "reconcilable, three attempts": Whole(THREE_ATTEMPTS, 30_000),
    "a request sent twice, and a workflow that is deleted": Whole(SENT_TWICE, 30_000),
    "deaths": Whole(DEATHS, 50_000),
}
"""All accidents together: for `python -m tests.protocol`."""


@dataclass(frozen=True)
class Missing:
    """Taken away, and what the model then finds: in what words, and after how many moves at the least."""

    build: Build
    without: frozenset[Protection]
    broken: str
    moves: int


def _missing(build: Build, broken: str, moves: int, *without: Protection) -> Missing:
    return Missing(build, frozenset(without), broken, moves)


MISSING: Final = (
    _missing(UNSAFE, "I2: the effect was had twice", 9, Protection.INTENT_FIRST),
    _missing(UNSAFE, "I2: a call was made although its receipt was stored", 10, Protection.RECEIPT_FIRST),
    _missing(UNSAFE, "I2: the effect was had twice", 9, Protection.DOUBT),
    _missing(RECONCILABLE_REDRIVEN, "I2: the effect was had twice", 9, Protection.LOOK_UP),
    _missing(RECONCILABLE_REDRIVEN, "I2: the effect was had twice", 11, Protection.LANDING_HORIZON),
    _missing(RECONCILABLE_REDRIVEN, "I2: the effect was had twice", 12, Protection.TIME_LIMIT),
    _missing(TWO_MORE_AFTER_A_CRASH, "I2: the effect was had twice", 14, Protection.SENT_AT_ANEW),
    _missing(TWO_MORE_AFTER_A_CRASH, "I2: the effect was had twice", 14, Protection.ONE_SENDER),
    _missing(
        UNDONE_AFTER_A_CRASH,
        "I4: the result says not_done, and the effect is there",
        14,
        Protection.GIVE_UP_ONLY_WHAT_WAS_ASKED,
    ),
    _missing(
        IDEMPOTENT_CANCELLED,
        "I4: the result says not_done, and the effect is there",
        13,
        Protection.RELEASE_KEEPS_THE_DOUBT,
    ),
    _missing(UNSAFE_REDRIVEN, "I2: the effect was had twice", 11, Protection.SAME_KEY),
    _missing(OTHER_ARGUMENTS, "I2: a receipt was taken for that of other arguments", 9, Protection.FINGERPRINT),
    _missing(
        TRANSACTIONAL, "I4: the result says not_done, and the effect is there", 8, Protection.COMMIT_TOGETHER
    ),
    _missing(
        TRANSACTIONAL, "I2: the effect was had twice", 7, Protection.COMMIT_TOGETHER, Protection.ONE_TICKET_A_KEY
    ),
    _missing(
        TRANSACTIONAL,
        "I4: the job was cancelled, and its effect was not undone",
        9,
        Protection.COMPLETE_WHAT_IS_BEGUN,
        Protection.LOCK_TELLS,
    ),
    _missing(
        UNDONE_AFTER_A_CRASH,
        "I4: the job was cancelled, and its effect was not undone",
        16,
        Protection.COMPLETE_WHAT_IS_BEGUN,
    ),
    _missing(TRANSACTIONAL_CANCELLED, DEAD_END, 5, Protection.ABANDON),
    _missing(
        TRANSACTIONAL,
        "I4: the job was cancelled, and its effect was not undone",
        9,
        Protection.NO_STEP_WHEN_UNDOING,
    ),
    _missing(
        TRANSACTIONAL,
        "I4: the job was cancelled, and its effect was not undone",
        9,
        Protection.BEGIN_ASKS_FOR_CANCEL,
    ),
    _missing(
        UNSAFE_REDRIVEN,
        "I4: the result says not_done, and the effect is there",
        11,
        Protection.BEGIN_ASKS_FOR_THE_JOB,
    ),
    _missing(ONE_MAY_FAIL, "I9: more attempts than the limit", 5, Protection.ATTEMPT_LIMIT),
    _missing(SENT_TWICE, "I1: one key has two jobs", 6, Protection.KEY_WITH_THE_JOB),
    _missing(SENT_TWICE_WITHOUT_USER, DEAD_END, 5, Protection.OUTBOX_WITH_THE_JOB),
    _missing(SENT_TWICE_WITHOUT_USER, DEAD_END, 5, Protection.MARK_AFTER_TELLING),
    _missing(ROOM_FOR_ONE, "I5: more jobs of a tenant run than its cap allows", 6, Protection.ONE_STARTER),
    _missing(SENT_TWICE, "I3: a job that is over was started again", 9, Protection.REJECT_DUPLICATE),
    _missing(SENT_TWICE, "I3: a job that is over was started again", 10, Protection.START_ASKS_FOR_THE_JOB),
    _missing(SENT_TWICE, "I3: a step of a job began after its end", 6, Protection.BEGIN_ASKS_FOR_THE_JOB),
    _missing(DEATHS, "I3: a job died of a death that was over", 4, Protection.DEATH_OF_A_GENERATION),
    _missing(DEATHS, "I2: a job was redriven without a person's word", 10, Protection.REDRIVE_OF_A_GENERATION),
    _missing(
        DEATHS, "I3: a job ended by a word that nobody gave on this death", 14, Protection.END_OF_A_GENERATION
    ),
    _missing(DEATHS, "I3: a job that was over moved to another end", 16, Protection.FINAL_STAYS),
    _missing(DEATHS, "I8: two words on one death were accepted", 4, Protection.ONE_WORD),
    _missing(DEATHS, DEAD_END, 1, Protection.DEATH_WITH_ITS_WORD),
    _missing(DEAD_ONCE, DEAD_END, 14, Protection.STILL_REQUESTED),
    _missing(DEATHS_WITHOUT_FREEZES, DEAD_END, 7, Protection.LOST_WORDS),
)

NOT_NEEDED_ALONE: Final[dict[Protection, tuple[Build, str]]] = {
    Protection.ONE_TICKET_A_KEY: (TRANSACTIONAL, "the receipt commits with the ticket"),
    Protection.LOCK_TELLS: (TRANSACTIONAL, "who completes nothing rolls its ticket back"),
    Protection.FENCE_BEGIN: (
        TRANSACTIONAL,
        "an attempt that was given up is met by the same checks as any late one",
    ),
    Protection.FENCE_COMPLETE: (TRANSACTIONAL, "the first receipt holds, and it is true"),
    Protection.ROWS_ARE_LOCKED: (SENT_TWICE_WITHOUT_USER, "what is told twice is taken once"),
    Protection.WORD_OF_A_GENERATION: (
        DEATHS_WITHOUT_OPERATOR,
        "the ledger asks for the generation when the word takes effect",
    ),
}
"""Protections without which the model finds nothing as long as the others stand, each with the reason. They are
kept for what they save (needless doubts, calls and words), or as a second line."""
