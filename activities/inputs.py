"""What crosses between workflows and activities: one small frozen model a handler, so that fields can be added.

No content travels: the request, the model's replies, a tool's arguments and receipts stay in the ledger, where an
activity looks them up with the statement that it makes anyway. So none of it is in Temporal's history.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import JsonValue
from temporalio.exceptions import ApplicationError

from agentjobs.domain.alerts import DeathRef
from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.decisions import Progress, WantedTool
from agentjobs.domain.failures import Failure
from agentjobs.domain.job import Frozen
from agentjobs.domain.states import JobState


class JobRef(Frozen):
    """Which job an activity works for, and under which version of its agent."""

    job_id: str
    agent: str
    policy_version: str
    tried: int = 0
    """Attempts that were made in the fast lane before: those of the activity are counted on from here."""


class ModelStep(JobRef):
    """Decide step `step`."""

    step: int


class ToolStep(JobRef):
    """Carry out the tool call of step `step`."""

    step: int
    wanted: WantedTool


class ShortSteps(JobRef):
    """Go on from this progress, as long as there are short steps. `generation`: how often the job had died."""

    progress: Progress
    max_steps: int
    generation: int


class Stopped(Frozen):
    """A short step that could not be done: the ApplicationError of its activity, if it had one of its own."""

    step: str
    message: str
    type: str | None = None
    details: tuple[JsonValue, ...] = ()
    wait_seconds: float | None
    """Until it may be tried again; None: never."""

    @classmethod
    def by(cls, error: ApplicationError, step: str) -> Self:
        """As its activity would have told it."""
        wait = error.next_retry_delay.total_seconds() if error.next_retry_delay else 0.0
        return cls(
            step=step,
            message=error.message,
            type=error.type,
            details=tuple(error.details),
            wait_seconds=None if error.non_retryable else wait,
        )

    @property
    def error(self) -> ApplicationError:
        """Again what it was."""
        return ApplicationError(self.message, *self.details, type=self.type, non_retryable=True)


class ShortStepsDone(Frozen):
    """How far they went."""

    steps: tuple[str, ...]
    """For the reader of a history."""

    progress: Progress
    over: JobState | None = None
    """The end that is on record now."""

    stopped: Stopped | None = None


class ApprovalStep(ToolStep):
    """Ask a person about the tool call of step `step`, or look what was said."""


class ApprovalNow(Frozen):
    """Where the request stands, and when it ends."""

    state: ApprovalState
    expires_at: datetime


class ApprovalWord(Frozen):
    """The word to a job's workflow that a person decided about just this call. What was said is in the ledger."""

    step: str
    fingerprint: str


class UndoStep(JobRef):
    """Compensate the effect begun under this activity id."""

    undone: str
    tool: str


class EffectsToUndo(Frozen):
    """Activity ids, in the order in which they were begun."""

    steps: tuple[str, ...]


class PlanMade(Frozen):
    """What the Temporal UI may show of a plan: no content."""

    language: str
    category: str
    urgency: str


class Decided(Frozen):
    """The tool that the model wants, or None: nothing more."""

    wanted: WantedTool | None


class Done(Frozen):
    """A step is stored in the ledger."""

    step: str


class UndoneOutcome(StrEnum):
    """What an undo found."""

    UNDONE = "undone"
    NOTHING_TO_UNDO = "nothing_to_undo"


class Finished(JobRef):
    """Record this final state. `generation`: how often the job had died; runs of an older release tell none."""

    state: JobState
    generation: int | None = None


class Death(JobRef):
    """Record that the job cannot go on. `generation`: how often it had died before."""

    generation: int
    failure: Failure


class Order(Frozen):
    """A person's word on a dead job, of one generation."""

    action: Literal["redrive", "discard"]
    generation: int
    policy_version: str
    max_steps: int | None = None
    """Of that version, within the job's budget."""

    again: bool = False
    """For a redrive: effects in doubt are to be had once more."""


class Redrive(JobRef):
    """Record that the redrive of this generation takes effect."""

    generation: int
    again: bool = False


class Resumed(Frozen):
    """The job runs again, until this deadline."""

    state: JobState
    deadline_at: datetime
    start_over: bool = False
    """The input was corrected: plan again, and meet on the way what stays."""


class StateNow(Frozen):
    """The state that holds in the ledger after a record."""

    state: JobState


class JobStart(JobRef):
    """The input of AgentJob: all that is carried over a redrive and a continue-as-new."""

    tenant: str
    deadline_at: datetime
    max_steps: int
    generation: int = 0
    progress: Progress = Progress()
    order: Order | None = None
    fast_lane: bool = False
    """Short steps are carried out within the workflow task. Runs of an older release go on as they began."""


class WaitNotice(Frozen):
    """The word to a job's workflow that an attempt has failed, and until when it waits: for the Temporal UI."""

    step: str
    attempt: int
    category: str
    until: datetime


class DeathNotice(DeathRef):
    """The word to the desk: ids and codes only."""


class DeskStart(Frozen):
    """The input of DeadLetterDesk: what is carried over a continue-as-new."""

    tenant: str
    notices: tuple[DeathNotice, ...] = ()
    collected: int = 0
    """Deaths of the last window: after many the next one is wider."""

    in_batches: bool = False
    """Whether the relay has told of deaths in batches: a desk of an older release goes on as it was until then."""

    look_at: datetime | None = None
    """When the letters are looked at next."""


class OneDeath(Frozen):
    """Tell somebody of this death."""

    tenant: str
    notice: DeathNotice


class Deaths(Frozen):
    """Tell somebody of these deaths."""

    tenant: str
    notices: tuple[DeathNotice, ...]


class DeskRef(Frozen):
    """Whose desk looks."""

    tenant: str


class AlertRef(Frozen):
    """The input of AlertDelivery: an alert, and the sinks that are to get it."""

    tenant: str
    alert_id: str
    sinks: tuple[str, ...]


class DeskDone(Frozen):
    """What one piece of the desk's work leaves to do."""

    deliveries: tuple[AlertRef, ...] = ()
    look_in_seconds: float | None = None
    """Until the letters are to be looked at; None: none is open."""


class AlertAt(Frozen):
    """Deliver this alert to this sink."""

    alert_id: str
    sink: str
