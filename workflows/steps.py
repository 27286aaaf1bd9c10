"""The activities of a job: which, under which id, within which limits. When each runs, AgentJob decides."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow

from activities.inputs import (
    ApprovalNow,
    ApprovalStep,
    Death,
    Finished,
    JobRef,
    JobStart,
    ModelStep,
    Order,
    Redrive,
    Resumed,
    StateNow,
    ToolStep,
    UndoStep,
)
from activities.model_calls import ModelCalls
from activities.records import Records
from activities.run_tool import ToolRuns
from agentjobs.domain import decisions, keys
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.failures import Category, Failure, failure
from agentjobs.domain.states import JobState
from workflows import options
from workflows.lanes import Lanes, Step
from workflows.options import Options

G = TypeVar("G", bound=JobRef)
R = TypeVar("R")


class Steps:
    """One job's activities. Those of the job itself end at `deadline_at`; undos and records outlast it."""

    def __init__(self, start: JobStart) -> None:
        self._ref = start.model_dump(include={"job_id", "agent", "policy_version"})
        self._lanes = Lanes(fast=start.fast_lane)
        self.deadline_at = start.deadline_at

    async def plan(self) -> None:
        """Have the plan made."""
        await self._model(ModelCalls.plan, JobRef(**self._ref), Step(keys.PLAN, "the plan"))

    async def call_model(self, action: decisions.CallModel) -> WantedTool | None:
        """Have the model choose."""
        step = keys.model_step(action.step)
        told = Step(step, f"what to do in step {action.step}")
        decided = await self._model(ModelCalls.call_model, ModelStep(**self._ref, step=action.step), told)
        return decided.wanted

    async def ask_approval(self, action: decisions.AskApproval) -> ApprovalNow:
        """Have a person asked, or look what was said. It may be repeated."""
        return await workflow.execute_activity_method(
            Records.ask_approval,
            ApprovalStep(**self._ref, step=action.step, wanted=action.wanted),
            activity_id=keys.approval_step(action.step, action.wanted.tool),
            summary=f"may {action.wanted.tool} be called?",
            **options.RECORD,
        )

    async def run_tool(self, action: decisions.RunTool) -> None:
        """Have the tool called."""
        step = keys.tool_step(action.step, action.wanted.tool)
        await self._lanes.carried_out(
            ToolRuns.run_tool,
            ToolStep(**self._ref, step=action.step, wanted=action.wanted),
            Step(step, action.wanted.tool),
            self._within(options.TOOL_CALL, step),
            short=action.wanted.short,
        )

    async def write_answer(self) -> None:
        """Have the answer written."""
        await self._model(ModelCalls.write_answer, JobRef(**self._ref), Step(keys.ANSWER, "the answer"))

    async def undo(self, action: decisions.Undo) -> None:
        """Have an effect compensated."""
        tool = keys.tool_of(action.undone)
        await workflow.execute_activity_method(
            ToolRuns.undo_tool,
            UndoStep(**self._ref, undone=action.undone, tool=tool),
            activity_id=keys.undo_step(action.undone),
            summary=f"undo {tool}",
            **options.UNDO,
        )

    async def record_outcome(self, generation: int, state: JobState) -> StateNow:
        """The end, into the ledger. generation: how often the job has died."""
        return await _to_its_end(
            self._lanes.carried_out(
                Records.record_outcome,
                Finished(**self._ref, state=state, generation=generation),
                Step("outcome", f"into the ledger: {state}"),
                lambda: options.RECORD,
            )
        )

    async def record_death(self, generation: int, died_of: Failure) -> StateNow:
        """The death, into the ledger. generation: how often the job had died before."""
        return await _to_its_end(
            workflow.execute_activity_method(
                Records.record_death,
                Death(**self._ref, generation=generation, failure=died_of),
                activity_id=f"death-{generation + 1}",
                summary=f"into the ledger: dead of {died_of.reason}",
                **options.RECORD,
            )
        )

    async def record_redrive(self, order: Order) -> Resumed:
        """The redrive, into the ledger."""
        return await _to_its_end(
            workflow.execute_activity_method(
                Records.record_redrive,
                Redrive(**self._ref, generation=order.generation, again=order.again),
                activity_id=f"redrive-{order.generation}",
                summary="into the ledger: redriven",
                **options.RECORD,
            )
        )

    async def _model(self, activity: Callable[[Any, G], Coroutine[Any, Any, R]], given: G, step: Step) -> R:
        within = self._within(options.MODEL_CALL, step.activity_id)
        # Whether a model is short, only its worker knows.
        short = not self._lanes.models_take_time
        return await self._lanes.carried_out(activity, given, step, within, short=short)

    def _within(self, of_kind: Options, step: str) -> Callable[[], Options]:
        self._remaining(step)  # past the deadline no step begins, in neither lane
        return lambda: options.within(of_kind, self._remaining(step))

    def _remaining(self, step: str) -> timedelta:
        remaining = self.deadline_at - workflow.now()
        if remaining <= timedelta():
            raise decisions.GivenUp(failure(Category.DEADLINE_EXCEEDED, "the job's deadline has passed", step))
        return remaining


async def _to_its_end(record: Coroutine[Any, Any, R]) -> R:
    """A record is finished also when the workflow is cancelled meanwhile; the loop notices the cancel after."""
    running = asyncio.ensure_future(record)
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled():
                raise
    return running.result()
