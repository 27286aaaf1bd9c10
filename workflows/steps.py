"""The activities of a job: which, under which id, within which limits. When each runs, AgentJob decides."""

import asyncio
from collections.abc import Coroutine
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
from workflows.fast_lane import FastLane

R = TypeVar("R")


class Steps:
    """One job's activities. Those of the job itself end at `deadline_at`; undos and records outlast it."""

    def __init__(self, start: JobStart) -> None:
        self._ref = start.model_dump(include={"job_id", "agent", "policy_version"})
        self.fast_lane = FastLane(start)
        self.deadline_at = start.deadline_at
        self._is_of_this_release = start.fast_lane

    async def plan(self) -> None:
        """Have the plan made."""
        await workflow.execute_activity_method(
            ModelCalls.plan,
            JobRef(**self._job(keys.PLAN)),
            activity_id=keys.PLAN,
            summary="the plan",
            **options.within(options.MODEL_CALL, self._remaining(keys.PLAN)),
        )

    async def call_model(self, action: decisions.CallModel) -> WantedTool | None:
        """Have the model choose."""
        step = keys.model_step(action.step)
        decided = await workflow.execute_activity_method(
            ModelCalls.call_model,
            ModelStep(**self._job(step), step=action.step),
            activity_id=step,
            summary=f"what to do in step {action.step}",
            **options.within(options.MODEL_CALL, self._remaining(step)),
        )
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
        await workflow.execute_activity_method(
            ToolRuns.run_tool,
            ToolStep(**self._job(step), step=action.step, wanted=action.wanted),
            activity_id=step,
            summary=action.wanted.tool,
            **options.within(options.TOOL_CALL, self._remaining(step)),
        )

    async def write_answer(self) -> None:
        """Have the answer written."""
        await workflow.execute_activity_method(
            ModelCalls.write_answer,
            JobRef(**self._job(keys.ANSWER)),
            activity_id=keys.ANSWER,
            summary="the answer",
            **options.within(options.MODEL_CALL, self._remaining(keys.ANSWER)),
        )

    async def find_effects(self) -> tuple[str, ...]:
        """Have looked up what there is to undo."""
        found = await _to_its_end(
            workflow.execute_activity_method(
                ToolRuns.find_effects,
                JobRef(**self._ref),
                activity_id="effects",
                summary="what there is to undo",
                **options.RECORD,
            )
        )
        return found.steps

    async def undo(self, action: decisions.Undo) -> None:
        """Have an effect compensated."""
        tool = keys.tool_of(action.undone)
        undone = workflow.execute_activity_method(
            ToolRuns.undo_tool,
            UndoStep(**self._ref, undone=action.undone, tool=tool),
            activity_id=keys.undo_step(action.undone),
            summary=f"undo {tool}",
            **options.UNDO,
        )
        # An activity that is asked to cancel is not tried again, for whatever reason it fails. Runs of an older
        # release do ask.
        await (_to_its_end(undone) if self._is_of_this_release else undone)

    async def record_outcome(self, generation: int, state: JobState) -> StateNow:
        """The end, into the ledger. generation: how often the job has died."""
        return await _to_its_end(
            workflow.execute_activity_method(
                Records.record_outcome,
                Finished(**self._job(keys.OUTCOME), state=state, generation=generation),
                activity_id=keys.OUTCOME,
                summary=f"into the ledger: {state}",
                **options.RECORD,
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

    def _job(self, step: str) -> dict[str, Any]:
        return {**self._ref, "tried": self.fast_lane.tries_of(step)}

    def _remaining(self, step: str) -> timedelta:
        remaining = self.deadline_at - workflow.now()
        if remaining <= timedelta():
            raise decisions.GivenUp(failure(Category.DEADLINE_EXCEEDED, "the job's deadline has passed", step))
        return remaining


async def _to_its_end(record: Coroutine[Any, Any, R]) -> R:
    """Finished also when the workflow is cancelled meanwhile; the loop notices the cancel after."""
    running = asyncio.ensure_future(record)
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled():
                raise
    return running.result()
