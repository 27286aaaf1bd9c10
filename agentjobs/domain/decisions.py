"""What a job does next: a pure function of what is done so far. The workflow only carries it out.

plan -> (model -> approval? -> tool)* -> answer -> outcome, and on cancel or discard: undo* -> outcome
"""

from enum import StrEnum
from typing import Annotated, assert_never

from pydantic import Field

from agentjobs.domain import keys
from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.failures import Category, Failure, failure
from agentjobs.domain.job import Frozen
from agentjobs.domain.states import JobState


class Goal(StrEnum):
    """What the job is heading for; it moves away from ANSWER once, and never back."""

    ANSWER = "answer"
    CANCEL = "cancel"
    DISCARD = "discard"


class WantedTool(Frozen):
    """A tool call that the model decided on. Its arguments stay with the reply in the ledger: they are made of
    what somebody wrote, and the workflow needs no more than to know that they are the same.
    """

    tool: str
    fingerprint: str
    undoable: bool = False
    approval_seconds: float | None = None
    """How long a person may take to approve the call; None: nobody is asked."""

    short: bool = False
    """Whether the call is over in milliseconds: it may take the fast lane."""


class Progress(Frozen):
    """Everything that is carried over a redrive and a continue-as-new."""

    goal: Goal = Goal.ANSWER
    planned: bool = False
    step: Annotated[int, Field(ge=0)] = 0
    wanted: WantedTool | None = None
    approved: bool = False
    """Whether the wanted call has the approval that it needs."""

    finished_tools: bool = False
    answered: bool = False
    to_undo: tuple[str, ...] = ()
    """Activity ids of effects that declare an undo, in the order in which they were begun."""

    unseen: bool = False
    """Whether effects may have been begun that are not noted: in the fast lane a workflow forgets what was done in
    a task that did not come to its end. Asked for before anything is undone.
    """


class MakePlan(Frozen):
    """Ask the model what the request is."""


class CallModel(Frozen):
    """Ask the model for step `step`."""

    step: int


class AskApproval(Frozen):
    """Ask a person whether the tool call that the model wants may be carried out, and wait for the answer."""

    step: int
    wanted: WantedTool


class RunTool(Frozen):
    """Carry out the tool call that the model wants."""

    step: int
    wanted: WantedTool


class WriteAnswer(Frozen):
    """Ask the model for the answer to the person who asked."""


class FindEffects(Frozen):
    """Ask the ledger which effects there are to undo."""


class Undo(Frozen):
    """Compensate the effect that was begun under this activity id."""

    undone: str


class Finish(Frozen):
    """Record the final state."""

    state: JobState


class GiveUp(Frozen):
    """The job cannot go on: the dead state."""

    failure: Failure


class GivenUp(Exception):
    """An action cannot be carried out at all: the job dies of this failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


Action = MakePlan | CallModel | AskApproval | RunTool | WriteAnswer | FindEffects | Undo | Finish | GiveUp


def decide(progress: Progress, max_steps: int) -> Action:
    """The next action. Total: every progress has exactly one."""
    match progress.goal:
        case Goal.ANSWER:
            return _towards_answer(progress, max_steps)
        case Goal.CANCEL:
            return _undo_or(progress, JobState.CANCELLED)
        case Goal.DISCARD:
            return _undo_or(progress, JobState.DISCARDED)
        case _:
            assert_never(progress.goal)


def _towards_answer(progress: Progress, max_steps: int) -> Action:
    if not progress.planned:
        return MakePlan()
    if progress.wanted is not None:
        asks = progress.wanted.approval_seconds is not None and not progress.approved
        return (AskApproval if asks else RunTool)(step=progress.step, wanted=progress.wanted)
    if not progress.finished_tools:
        return _next_model_call(progress, max_steps)
    return Finish(state=JobState.SUCCEEDED) if progress.answered else WriteAnswer()


def _next_model_call(progress: Progress, max_steps: int) -> Action:
    step = progress.step + 1
    if step > max_steps:
        return GiveUp(
            failure=failure(
                Category.BUDGET_EXCEEDED,
                f"the agent wanted a step beyond its limit of {max_steps}",
                keys.model_step(step),
            )
        )
    return CallModel(step=step)


def _undo_or(progress: Progress, state: JobState) -> Action:
    if progress.unseen:
        return FindEffects()
    return Undo(undone=progress.to_undo[-1]) if progress.to_undo else Finish(state=state)


def plan_made(progress: Progress) -> Progress:
    """The plan is stored."""
    return progress.model_copy(update={"planned": True})


def model_decided(progress: Progress, wanted: WantedTool | None) -> Progress:
    """The model chose a tool, or (None) that nothing more is needed.

    An undoable tool is noted before it runs: if the job is cancelled while it is in flight, the undo
    looks at what the ledger knows of it.
    """
    step = progress.step + 1
    if wanted is None:
        return progress.model_copy(update={"step": step, "finished_tools": True})
    to_undo = progress.to_undo
    if wanted.undoable and (begun := keys.tool_step(step, wanted.tool)) not in to_undo:
        to_undo = (*to_undo, begun)
    return progress.model_copy(update={"step": step, "wanted": wanted, "to_undo": to_undo})


def approval_given(progress: Progress) -> Progress:
    """A person approved the wanted call."""
    return progress.model_copy(update={"approved": True})


def not_approved(step: int, wanted: WantedTool, state: ApprovalState) -> Failure:
    """What the job dies of when its call was refused, or when nobody answered in time."""
    activity_id = keys.tool_step(step, wanted.tool)
    if state is ApprovalState.REJECTED:
        return failure(Category.ACCESS_DENIED, f"a reviewer refused {wanted.tool}", activity_id)
    return failure(Category.DEADLINE_EXCEEDED, f"nobody approved {wanted.tool} in time", activity_id)


def tool_done(progress: Progress) -> Progress:
    """The wanted tool's receipt is stored."""
    return progress.model_copy(update={"wanted": None, "approved": False})


def answer_written(progress: Progress) -> Progress:
    """The answer is stored."""
    return progress.model_copy(update={"answered": True})


def effects_found(progress: Progress, begun: tuple[str, ...]) -> Progress:
    """The ledger has told which effects there are to undo. What was noted without being begun stays noted: nothing
    but its undo makes sure that it will not be.
    """
    noted = tuple(step for step in progress.to_undo if step not in begun)
    return progress.model_copy(update={"to_undo": (*begun, *noted), "unseen": False})


def undone(progress: Progress) -> Progress:
    """The last effect to undo is compensated, or was found not to need it."""
    return progress.model_copy(update={"to_undo": progress.to_undo[:-1]})


def discarded(progress: Progress, *, unseen: bool = False) -> Progress:
    """A reviewer gives the dead job up. If it died of a compensation already, that one is given up too: the
    result then says that its effect stays.
    """
    if progress.goal is Goal.ANSWER:
        return progress.model_copy(update={"goal": Goal.DISCARD, "unseen": unseen})
    return progress.model_copy(update={"goal": Goal.DISCARD, "to_undo": progress.to_undo[:-1]})


def redriven(progress: Progress) -> Progress:
    """The dead job runs again. One that died while it was being discarded has its compensation finished, and is
    then cancelled: a running job can no longer be discarded, and what was undone is not to be done again.

    Whether its call is still approved, the ledger is asked again: an approval that was not used may be too old.
    """
    goal = Goal.CANCEL if progress.goal is Goal.DISCARD else progress.goal
    return progress.model_copy(update={"goal": goal, "approved": False})


def started_over(progress: Progress) -> Progress:
    """The input of the dead job was corrected: it plans again. Replies that stay, and receipts, are met again on
    the way, so nothing is done twice. What is to be undone stays noted, also before it is met again.
    """
    return Progress(to_undo=progress.to_undo) if progress.goal is Goal.ANSWER else progress


def headed_for(progress: Progress, goal: Goal, *, unseen: bool = False) -> Progress:
    """A person ends the job. The first word holds: a cancel does not become a discard on the way."""
    if progress.goal is not Goal.ANSWER:
        return progress
    return progress.model_copy(update={"goal": goal, "unseen": unseen})
