"""Steps that need no activity of their own: over in milliseconds, one after the other, in one local activity.

Each is carried out by the same code, under the same key and with the same records as in an activity of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.carried import Carried, carrying
from activities.inputs import Finished, ModelStep, ShortSteps, ShortStepsDone, Stopped, ToolStep
from activities.model_calls import ModelCalls
from activities.records import Records
from activities.run_tool import ToolRuns
from agentjobs.domain import decisions, keys
from agentjobs.domain.decisions import Action
from agentjobs.domain.states import JobState
from agentjobs.tracing.temporal import SHORT_STEPS

R = TypeVar("R")

SECONDS_TOGETHER = 2.0
"""Then no further one begins in the same activity: what is done is told to the server before it is much."""

PART_OF_LIMIT = 0.8
"""After this part of its time limit the activity tells what is done, and which step was not."""


class ShortStepRuns:
    """Short steps of one worker."""

    def __init__(self, models: ModelCalls, tools: ToolRuns, records: Records) -> None:
        self._models = models
        self._tools = tools
        self._records = records

    @activity.defn(name=SHORT_STEPS)
    async def short_steps(self, given: ShortSteps) -> ShortStepsDone:
        """Go on from `given.progress` for as long as the next step is a short one."""
        run = _Run(self._models, self._tools, self._records, given)
        limit = activity.info().start_to_close_timeout
        try:
            async with asyncio.timeout(limit.total_seconds() * PART_OF_LIMIT if limit else None):
                await run.go()
        except TimeoutError:
            return run.told(Stopped(step=run.step, message="a short step took too long", wait_seconds=0.0))
        except ApplicationError as error:
            return run.told(Stopped.by(error, run.step))
        return run.told()


class _Run:
    """Short steps of one job."""

    def __init__(self, models: ModelCalls, tools: ToolRuns, records: Records, given: ShortSteps) -> None:
        self._models = models
        self._tools = tools
        self._records = records
        self._given = given
        self._ref = given.model_dump(include={"job_id", "agent", "policy_version"})
        self._progress = given.progress
        self._done: list[str] = []
        self._over: JobState | None = None
        self.step = ""
        """What is carried out now, or was last."""

    async def go(self) -> None:
        """All of them. Raises ApplicationError, as the step did that could not be done."""
        until = time.monotonic() + SECONDS_TOGETHER
        while await self._is_carried_out(decisions.decide(self._progress, self._given.max_steps)):
            self._done.append(self.step)
            if self._over is not None or time.monotonic() >= until:
                return

    def told(self, stopped: Stopped | None = None) -> ShortStepsDone:
        """For the workflow."""
        return ShortStepsDone(steps=tuple(self._done), progress=self._progress, over=self._over, stopped=stopped)

    async def _is_carried_out(self, action: Action) -> bool:
        """False: it is no short step, and not begun."""
        match action:
            case decisions.MakePlan() if self._models.is_short(self._given):
                await self._as_step("plan", keys.PLAN, self._models.plan(self._given))
                self._progress = decisions.plan_made(self._progress)
            case decisions.CallModel(step=step) if self._models.is_short(self._given):
                asked = self._models.call_model(ModelStep(**self._ref, step=step))
                decided = await self._as_step("call_model", keys.model_step(step), asked)
                self._progress = decisions.model_decided(self._progress, decided.wanted)
            case decisions.RunTool(step=step, wanted=wanted) if wanted.short:
                called = self._tools.run_tool(ToolStep(**self._ref, step=step, wanted=wanted))
                await self._as_step("run_tool", keys.tool_step(step, wanted.tool), called)
                self._progress = decisions.tool_done(self._progress)
            case decisions.WriteAnswer() if self._models.is_short(self._given):
                await self._as_step("write_answer", keys.ANSWER, self._models.write_answer(self._given))
                self._progress = decisions.answer_written(self._progress)
            case decisions.Finish(state=state):
                end = self._records.record_outcome(
                    Finished(**self._ref, state=state, generation=self._given.generation)
                )
                self._over = (await self._as_step("record_outcome", keys.OUTCOME, end)).state
            case _:
                return False
        return True

    async def _as_step(self, kind: str, step: str, carried_out: Awaitable[R]) -> R:
        self.step = step
        with carrying(Carried(kind, step)):
            return await carried_out
