"""What the ledger must know of a job's course: its death, its redrive, its end."""

from __future__ import annotations

from temporalio import activity

from activities.executor import Present
from activities.failures import judged, told
from activities.inputs import ApprovalNow, ApprovalStep, Death, Finished, Redrive, Resumed, StateNow
from activities.measures import job_ended
from agentjobs.domain import keys
from agentjobs.domain.approvals import APPROVAL_SECONDS
from agentjobs.domain.states import JobState
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.approvals import WantedCall
from agentjobs.ledger.effects import CancelRequested, NotLive
from agentjobs.ledger.ledger import Ledger
from agentjobs.tracing.runs import run_ended


class Records:
    """Each is one statement that may be repeated without a second consequence."""

    def __init__(self, ledger: Ledger, failpoints: Failpoints, worker: Present) -> None:
        self._ledger = ledger
        self._failpoints = failpoints
        self._worker = worker

    @activity.defn
    async def record_outcome(self, finished: Finished) -> StateNow:
        """The final state."""
        with judged():
            await self._failpoints.reach("outcome.before_record")
            state = await self._ledger.outcomes.finish(
                finished.job_id, finished.state, generation=finished.generation
            )
            await self._failpoints.reach("outcome.after_record")
            run_ended(state)
            if state is finished.state:
                job_ended(state)
            return StateNow(state=state)

    @activity.defn
    async def ask_approval(self, asked: ApprovalStep) -> ApprovalNow:
        """Where the wanted call's approval stands; asked for first, unless it was. The job waits meanwhile."""
        step = keys.tool_step(asked.step, asked.wanted.tool)
        wanted = WantedCall(
            job_id=asked.job_id,
            key=keys.step_key(asked.job_id, step),
            step=step,
            tool=asked.wanted.tool,
            fingerprint=asked.wanted.fingerprint,
            seconds=asked.wanted.approval_seconds or APPROVAL_SECONDS,
        )
        with judged():
            try:
                state, expires_at = await self._ledger.approvals.ask(wanted)
            except (NotLive, CancelRequested) as error:
                raise told(error) from None
            return ApprovalNow(state=state, expires_at=expires_at)

    @activity.defn
    async def record_death(self, death: Death) -> StateNow:
        """The dead state, with its letter."""
        with judged():
            await self._failpoints.reach("outcome.before_record")
            state = await self._ledger.outcomes.bury(
                death.job_id, generation=death.generation, failure=death.failure, worker=self._worker.id
            )
            await self._failpoints.reach("outcome.after_record")
            run_ended(state, death.failure.reason if state is JobState.DEAD else None)
            if state is JobState.DEAD:
                job_ended(state, death.failure.reason)
            return StateNow(state=state)

    @activity.defn
    async def record_redrive(self, redrive: Redrive) -> Resumed:
        """The job runs again."""
        with judged():
            state, deadline_at = await self._ledger.outcomes.resume(
                redrive.job_id,
                generation=redrive.generation,
                policy_version=redrive.policy_version,
                again=redrive.again,
            )
            start_over = await self._ledger.dead_letters.input_corrected(redrive.job_id, redrive.generation)
            return Resumed(state=state, deadline_at=deadline_at, start_over=start_over)
