"""A bulk redrive: what comes next. A few letters (the canary), then a share, then the rest; and when to stop.

Pure: the ledger counts, this decides, the workflow BulkRedrive carries it out.
"""

import math
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from agentjobs.domain.job import Frozen

WORKFLOW_ID_PREFIX: Final = "bulk-redrive-"

LETTERS_LIMIT: Final = 10_000
"""Letters of one bulk redrive. More are several: each has its own canary."""

APPROVAL_ABOVE: Final = 100
"""With more letters it waits for a second person, unless the settings say otherwise."""

JUDGED_FROM: Final = 5
"""Fewer verdicts than these say nothing of a share, but at the end of a stage."""

WINDOW: Final = 20
"""The latest verdicts: a destination that breaks after a thousand recoveries shows here first."""

BATCH_SECONDS: Final = 1.0
"""What is due within this is asked together. A pause or a stop is heeded between two letters all the same."""

LONGEST_LOOK_SECONDS: Final = 30.0
PAUSED_LOOK_SECONDS: Final = 900.0
"""A resume wakes the workflow; this is for the case that its word is lost."""


class RedriveState(StrEnum):
    """Of a bulk redrive. The last three are final."""

    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    COMPLETED = "completed"


FINAL: Final = frozenset({RedriveState.STOPPED, RedriveState.CANCELLED, RedriveState.COMPLETED})


class Stage(StrEnum):
    """How far a bulk redrive dares to go."""

    CANARY = "canary"
    SHARE = "share"
    REST = "rest"


class StopReason(StrEnum):
    """Why a bulk redrive stopped by itself."""

    CANARY_FAILED = "canary_failed"
    TOO_MANY_FAILED = "too_many_failed"
    TOO_MANY_FAILED_LATELY = "too_many_failed_lately"


class Pace(Frozen):
    """How a bulk redrive proceeds: what was ordered, and how many letters it took."""

    letters: Annotated[int, Field(ge=1)]
    canary: Annotated[int, Field(ge=1)]
    share: Annotated[float, Field(gt=0, le=1)]
    rate_per_second: Annotated[float, Field(gt=0)]
    failure_limit: Annotated[float, Field(ge=0, le=1)]

    def end_of(self, stage: Stage) -> int:
        """Up to how many letters may be asked in this stage, those before it included."""
        if stage is Stage.CANARY:
            return min(self.canary, self.letters)
        if stage is Stage.SHARE:
            return min(self.canary + math.ceil(self.share * self.letters), self.letters)
        return self.letters


class Counts(Frozen):
    """The letters by what has become of them. `asked`: no verdict yet, and its time is not over.

    When that time is over without a verdict, a job that runs counts as alive (`no_verdict`: neither good nor bad),
    and one whose redrive never took effect as failed (`not_taken`).
    """

    waiting: int = 0
    asked: int = 0
    recovered: int = 0
    died_again: int = 0
    cancelled: int = 0
    no_verdict: int = 0
    not_taken: int = 0
    skipped: int = 0

    @property
    def failed(self) -> int:
        """What speaks against going on."""
        return self.died_again + self.not_taken

    @property
    def decided(self) -> int:
        """Verdicts."""
        return self.failed + self.recovered + self.cancelled

    @property
    def taken(self) -> int:
        """Letters on which the word was given."""
        return self.decided + self.asked + self.no_verdict


class Standing(Frozen):
    """Where a bulk redrive stands, as the ledger counts it at one moment."""

    state: RedriveState
    counts: Counts
    canary_failed: int = 0
    lately_decided: int = 0
    """Of the latest WINDOW verdicts (fewer, while there are fewer)."""

    lately_failed: int = 0


class Ask(Frozen):
    """Give the word on further letters, until `up_to` were asked in all; then rest."""

    kind: Literal["ask"] = "ask"
    up_to: int
    rest_seconds: float


class Wait(Frozen):
    """Look again after so long, or when called."""

    kind: Literal["wait"] = "wait"
    seconds: float


class End(Frozen):
    """Nothing further is touched: all is decided, or too much has failed."""

    kind: Literal["end"] = "end"
    state: Literal[RedriveState.STOPPED, RedriveState.COMPLETED]
    because: StopReason | None = None


class Over(Frozen):
    """The ledger says that it has ended."""

    kind: Literal["over"] = "over"


Next = Ask | Wait | End | Over


def workflow_id(redrive_id: str) -> str:
    """The id of the workflow that carries a bulk redrive out."""
    return WORKFLOW_ID_PREFIX + redrive_id


def stage_of(pace: Pace, counts: Counts) -> Stage:
    """The stage: the next one begins when all of the one before have their verdict."""
    for stage in (Stage.CANARY, Stage.SHARE):
        end = pace.end_of(stage)
        if counts.taken < end or (counts.taken == end and counts.asked > 0):
            return stage
    return Stage.REST


def next_of(pace: Pace, standing: Standing, looks_in_vain: int = 0) -> Next:
    """What comes next. looks_in_vain: how often in a row the answer was to wait."""
    if standing.state in FINAL:
        return Over()
    if standing.state is not RedriveState.RUNNING:
        return Wait(seconds=PAUSED_LOOK_SECONDS)
    because = stopped_because(pace, standing)
    if because is not None:
        return End(state=RedriveState.STOPPED, because=because)
    counts = standing.counts
    if counts.waiting == 0 and counts.asked == 0:
        return End(state=RedriveState.COMPLETED)
    due = pace.end_of(stage_of(pace, counts)) - counts.taken
    if counts.waiting == 0 or due <= 0:
        return Wait(seconds=min(2.0 ** min(looks_in_vain, 10), LONGEST_LOOK_SECONDS))
    batch = min(due, max(1, math.floor(pace.rate_per_second * BATCH_SECONDS)))
    return Ask(up_to=counts.taken + batch, rest_seconds=batch / pace.rate_per_second)


def stopped_because(pace: Pace, standing: Standing) -> StopReason | None:
    """Why it must not go on, if so. Any failure of the canary counts, also one that comes late."""
    counts = standing.counts
    if standing.canary_failed > 0:
        return StopReason.CANARY_FAILED
    if counts.decided < JUDGED_FROM and not _at_a_gate(pace, counts):
        return None
    if counts.failed > pace.failure_limit * counts.decided:
        return StopReason.TOO_MANY_FAILED
    if standing.lately_failed > pace.failure_limit * standing.lately_decided:
        return StopReason.TOO_MANY_FAILED_LATELY
    return None


def _at_a_gate(pace: Pace, counts: Counts) -> bool:
    """A stage is over: its verdicts are in, and they are judged however few they are."""
    ends = {pace.end_of(Stage.CANARY), pace.end_of(Stage.SHARE)}
    return counts.asked == 0 and (counts.waiting == 0 or counts.taken in ends)
