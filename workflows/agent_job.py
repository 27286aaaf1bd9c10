"""AgentJob: plan -> (model -> tool)* -> answer -> outcome, for one job, until it is over or a person ends it.

The workflow decides nothing: it asks `decide`, carries the action out, and tells the progress. A job that
cannot go on stays here, dead, and waits for a person's word; it holds no worker while it waits.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, NoReturn, assert_never

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from activities.failures import CANCEL_REQUESTED, JOB_OVER
from activities.inputs import ApprovalWord, JobStart, Order, WaitNotice
from agentjobs.domain import decisions, keys
from agentjobs.domain.approvals import ApprovalState
from agentjobs.domain.decisions import Goal, Progress
from agentjobs.domain.failures import Category, Failure
from agentjobs.domain.states import FINAL, LIVE, JobState
from agentjobs.temporal import AGENT_JOB, DEAD_REASON, JOB_STATE, RETRY_WAIT_UNTIL
from workflows.approving import Approving
from workflows.steps import Steps
from workflows.verdicts import error_type, failure_of
from workflows.waiting import Waiting, moment, told


class JobOver(Exception):
    """The ledger says that the job has ended: nothing more to do here."""

    def __init__(self, state: JobState) -> None:
        super().__init__(state)
        self.state = state


@workflow.defn(name=AGENT_JOB)
class AgentJob:
    """One job. Workflow id: agent-job-<job id>, over all redrives and runs."""

    @workflow.init
    def __init__(self, start: JobStart) -> None:
        self._start = start
        self._progress: Progress = start.progress
        self._generation = start.generation
        self._steps = Steps(start)
        self._order: Order | None = start.order
        self._waits_for_word = False
        self._waiting = Waiting(self._show_wait)
        self._approving = Approving(self._steps, self._show_approval)
        self._state = JobState.RUNNING

    @workflow.run
    async def run(self, start: JobStart) -> JobState:
        """Carry the job to its end, and return its final state."""
        try:
            if start.order is not None:
                await self._follow(start.order)
            await self._to_the_end()
        except JobOver as over:
            self._show(over.state)
            await workflow.wait_condition(workflow.all_handlers_finished)
            return over.state

    @workflow.update
    def redrive(self, order: Order) -> None:
        """A person's word that the dead job runs again."""
        self._order = order

    @workflow.update
    def discard(self, order: Order) -> None:
        """A person's word that the dead job is given up, and what it did undone."""
        self._order = order

    @workflow.update
    def decide(self, word: ApprovalWord) -> None:  # noqa: ARG002 - the validator has read it
        """A person's word on the call that waits for an approval."""
        self._approving.call()

    @workflow.signal
    async def attempt_waits(self, notice: WaitNotice) -> None:
        """An attempt failed, and the next one waits: shown in the Temporal UI, and nothing else."""
        if self._state in LIVE:
            await self._waiting.until_over(notice)

    @redrive.validator
    def _redrivable(self, order: Order) -> None:
        self._refuse_unless_dead(order, "redrive")

    @discard.validator
    def _discardable(self, order: Order) -> None:
        self._refuse_unless_dead(order, "discard")

    @decide.validator
    def _decidable(self, word: ApprovalWord) -> None:
        action = decisions.decide(self._progress, self._start.max_steps)
        if not isinstance(action, decisions.AskApproval):
            raise ApplicationError("no call waits for an approval", type="nothing_to_approve")
        wanted = ApprovalWord(
            step=keys.tool_step(action.step, action.wanted.tool), fingerprint=action.wanted.fingerprint
        )
        if word != wanted:
            raise ApplicationError("another call waits for an approval", type="other_call")

    @workflow.query
    def progress(self) -> Progress:
        """What is done so far."""
        return self._progress

    def _refuse_unless_dead(self, order: Order, action: str) -> None:
        if order.action != action:
            raise ApplicationError("the order is for another update", type="wrong_update")
        if not self._waits_for_word or self._order is not None or order.generation != self._generation:
            raise ApplicationError("the job is not dead, or of another generation", type="not_dead")

    async def _to_the_end(self) -> NoReturn:
        while True:
            self._notice_cancel()
            if workflow.info().is_continue_as_new_suggested():
                await self._continue_as_new(order=None)
            action = decisions.decide(self._progress, self._start.max_steps)
            way = self._take_fast_lane(action) if self._steps.fast_lane.takes(action) else self._carry_out(action)
            died_of = await self._try(way)
            if died_of is not None:
                await self._die(died_of)

    def _notice_cancel(self) -> None:
        # Asked for each time, since a cancel that arrives together with a result raises nothing (sdk-python 620).
        if workflow.cancellation_reason() is not None:
            self._head_for(Goal.CANCEL)

    def _head_for(self, goal: Goal) -> None:
        self._progress = decisions.headed_for(self._progress, goal, unseen=self._start.fast_lane)

    async def _try(self, way: Awaitable[Progress]) -> Failure | None:
        """Keep the progress. A failure that retries cannot mend is returned."""
        try:
            self._progress = await way
            self._waiting.over()
        except decisions.GivenUp as given_up:
            return given_up.failure
        except ActivityError as error:
            return self._what_follows(error)
        except asyncio.CancelledError:
            self._head_for(Goal.CANCEL)
        return None

    def _what_follows(self, error: ActivityError) -> Failure | None:
        kind = error_type(error)
        if kind == JOB_OVER and isinstance(error.cause, ApplicationError):
            raise JobOver(JobState(error.cause.details[0]))
        # A call that fails after a cancel was asked for is no death: it is not even tried again.
        if is_cancelled_exception(error) or kind == CANCEL_REQUESTED or self._cancel_is_unheeded():
            self._head_for(Goal.CANCEL)
            return None
        if self._progress.goal is Goal.ANSWER or error.activity_id == keys.OUTCOME:
            return failure_of(error)
        return failure_of(error).model_copy(update={"reason": Category.COMPENSATION_FAILED})

    async def _take_fast_lane(self, action: decisions.Action) -> Progress:
        done = await self._steps.fast_lane.go_on(action, self._progress, self._generation)
        self._progress = done.progress  # also when the step after it fails
        if done.over is not None:
            raise JobOver(_taken(done.over))
        if done.stopped is not None:
            await self._steps.fast_lane.wait_or_raise(done.stopped)
        return done.progress

    async def _carry_out(self, action: decisions.Action) -> Progress:
        match action:
            case decisions.MakePlan():
                await self._steps.plan()
                return decisions.plan_made(self._progress)
            case decisions.CallModel():
                return decisions.model_decided(self._progress, await self._steps.call_model(action))
            case decisions.AskApproval():
                return await self._approved(action)
            case decisions.RunTool():
                await self._steps.run_tool(action)
                return decisions.tool_done(self._progress)
            case decisions.WriteAnswer():
                await self._steps.write_answer()
                return decisions.answer_written(self._progress)
            case decisions.FindEffects() | decisions.Undo():
                return await self._undone(action)
            case decisions.GiveUp():
                raise decisions.GivenUp(action.failure)
            case decisions.Finish():
                recorded = await self._steps.record_outcome(self._generation, action.state)
                raise JobOver(_taken(recorded.state))
            case _:
                assert_never(action)

    async def _undone(self, action: decisions.FindEffects | decisions.Undo) -> Progress:
        if isinstance(action, decisions.FindEffects):
            return decisions.effects_found(self._progress, await self._steps.find_effects())
        await self._steps.undo(action)
        return decisions.undone(self._progress)

    async def _approved(self, action: decisions.AskApproval) -> Progress:
        state = await self._approving.verdict(action)
        if state not in {ApprovalState.APPROVED, ApprovalState.USED}:
            raise decisions.GivenUp(decisions.not_approved(action.step, action.wanted, state))
        self._show(JobState.RUNNING)
        return decisions.approval_given(self._progress)

    async def _die(self, died_of: Failure) -> None:
        """The dead state: recorded, shown, and left by a person's word only."""
        recorded = await self._steps.record_death(self._generation, died_of)
        if recorded.state in FINAL:
            raise JobOver(recorded.state)
        self._generation += 1
        self._show(JobState.DEAD, died_of)
        await self._follow(await self._word())

    async def _word(self) -> Order:
        """A person's word; a cancel in the Temporal UI means a discard, and is compensated like one."""
        self._order, self._waits_for_word = None, True
        with contextlib.suppress(asyncio.CancelledError):
            await workflow.wait_condition(lambda: self._order is not None or self._cancel_is_unheeded())
        self._waits_for_word = False
        return self._order or Order(
            action="discard", generation=self._generation, policy_version=self._start.policy_version
        )

    def _cancel_is_unheeded(self) -> bool:
        # It may have come while the death was being recorded; then it raises nothing any more. One that was
        # heeded (the job died of its compensation) is no word on the death.
        return workflow.cancellation_reason() is not None and self._progress.goal is Goal.ANSWER

    async def _follow(self, order: Order) -> None:
        match order.action:
            case "discard":
                self._progress = decisions.discarded(self._progress, unseen=self._start.fast_lane)
            case "redrive" if order is not self._start.order:
                # A new run, so that it goes on with the current worker's code and a short history.
                await self._continue_as_new(order)
            case "redrive":
                self._progress = decisions.redriven(self._progress)
                await self._resume(order)
            case _:
                assert_never(order.action)

    async def _resume(self, order: Order) -> None:
        resumed = await self._steps.record_redrive(order)
        if resumed.state in FINAL:
            raise JobOver(resumed.state)
        self._steps.deadline_at = resumed.deadline_at
        if resumed.start_over:
            self._progress = decisions.started_over(self._progress)
        self._order = None
        self._show(JobState.RUNNING)

    async def _continue_as_new(self, order: Order | None) -> None:
        self._waiting.over()
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            self._start.model_copy(
                update={
                    "policy_version": order.policy_version if order else self._start.policy_version,
                    "max_steps": (order and order.max_steps) or self._start.max_steps,
                    "deadline_at": self._steps.deadline_at,
                    "generation": self._generation,
                    "progress": self._progress,
                    "order": order,
                }
            )
        )

    def _show_wait(self, notice: WaitNotice | None) -> None:
        workflow.set_current_details("" if notice is None else told(notice))
        state = JobState.RUNNING if notice is None else JobState.RETRY_WAIT
        workflow.upsert_search_attributes(
            [
                JOB_STATE.value_set(state.value),
                RETRY_WAIT_UNTIL.value_unset() if notice is None else RETRY_WAIT_UNTIL.value_set(notice.until),
            ]
        )

    def _show_approval(self, action: decisions.AskApproval, until: datetime) -> None:
        self._show(JobState.WAITING_APPROVAL)
        workflow.set_current_details(f"{action.wanted.tool} waits for an approval until {moment(until)}")

    def _show(self, state: JobState, died_of: Failure | None = None) -> None:
        self._state = state
        updates: list[SearchAttributeUpdate[Any]] = [JOB_STATE.value_set(state.value)]
        if self._waiting.forget():
            updates.append(RETRY_WAIT_UNTIL.value_unset())
        if died_of is not None:
            updates.append(DEAD_REASON.value_set(died_of.reason.value))
            workflow.set_current_details(
                f"dead at {died_of.step}: {died_of.reason}. Waits for a redrive or a discard."
            )
        else:
            workflow.set_current_details("")
        workflow.upsert_search_attributes(updates)


def _taken(end: JobState) -> JobState:
    if end in LIVE:
        # Never close on a job that the ledger believes to be under way: a failed workflow is found by us.
        raise ApplicationError("the ledger did not take the end", type="end_refused", non_retryable=True)
    return end
