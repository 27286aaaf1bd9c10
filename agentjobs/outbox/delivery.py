"""One outbox row, told to Temporal. Each may be delivered twice without a second consequence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar, assert_never

from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.workflow import UpdateMethodMultiParam

from activities.inputs import ApprovalWord, DeathNotice, DeskStart, JobStart, Order
from agentjobs.agents.spec import AgentRegistry
from agentjobs.domain import keys
from agentjobs.domain.decisions import Goal, Progress
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.states import FINAL, JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.outbox import OutboxRow, Topic
from agentjobs.outbox.words import word_told
from agentjobs.temporal import AGENT, JOB_STATE, TENANT
from workflows.agent_job import AgentJob
from workflows.dead_letter_desk import DeadLetterDesk

W = TypeVar("W", Order, ApprovalWord)

RPC_TIMEOUT = timedelta(seconds=5)
"""The rows stay locked meanwhile; a Temporal that does not answer within this counts as down."""


WORKFLOW_TASK_TIMEOUT = timedelta(seconds=2)
"""A worker that dies while it decides, or in a short step, is noticed after this; the default is ten. (Of short
steps that take longer the SDK tells the server in time.)
"""


class NotYet(Exception):
    """The workflow cannot take this now: deliver the row again a little later."""


class Delivery:
    """Tells Temporal what rows ask for."""

    def __init__(self, client: Client, ledger: Ledger, agents: AgentRegistry, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue
        self._ledger = ledger
        self._agents = agents

    async def deliver(self, row: OutboxRow) -> None:
        """Returns when Temporal has taken it, durably. Raises NotYet, RPCError, or UnknownAgent."""
        with word_told(row):
            await self._deliver(row)

    async def _deliver(self, row: OutboxRow) -> None:
        match row.topic:
            case Topic.START_JOB:
                await self._start(row)
            case Topic.CANCEL_JOB:
                await self._cancel(row)
            case Topic.REDRIVE_JOB | Topic.DISCARD_JOB:
                await self._order(row)
            case Topic.APPROVAL_DECIDED:
                await self._tell_decision(row)
            case Topic.JOB_DIED | Topic.APPROVAL_REQUESTED:
                await self.tell_desk([row])
            case _:
                assert_never(row.topic)

    async def _start(self, row: OutboxRow) -> None:
        if row.state in FINAL or row.state is JobState.DEAD:
            return  # cancelled before it began, or a second delivery of a job that is over
        await self._start_workflow(row, WorkflowIDReusePolicy.REJECT_DUPLICATE, order=None)

    async def _start_workflow(
        self,
        row: OutboxRow,
        reuse: WorkflowIDReusePolicy,
        *,
        order: Order | None,
        progress: Progress | None = None,
    ) -> None:
        version = order.policy_version if order else row.policy_version
        try:
            await self._client.start_workflow(
                AgentJob.run,
                JobStart(
                    job_id=row.job_id,
                    tenant=row.tenant,
                    agent=row.agent,
                    policy_version=version,
                    deadline_at=row.deadline_at,
                    max_steps=self._max_steps(row, version),
                    generation=row.generation,
                    order=order,
                    progress=progress or Progress(),
                    fast_lane=True,
                ),
                id=keys.workflow_id(row.job_id),
                task_queue=self._task_queue,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=_search_attributes(row),
                static_summary=row.agent,
                static_details=_details(row),
                priority=Priority(priority_key=row.priority, fairness_key=row.tenant),
                task_timeout=WORKFLOW_TASK_TIMEOUT,
                rpc_timeout=RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return  # started before, and over already: that is what was wanted

    def _max_steps(self, row: OutboxRow, version: str) -> int:
        of_agent = self._agents.version(row.agent, version).max_steps
        return of_agent if row.budget_steps is None else min(of_agent, row.budget_steps)

    async def _cancel(self, row: OutboxRow) -> None:
        try:
            handle = self._client.get_workflow_handle(keys.workflow_id(row.job_id))
            await handle.cancel(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            if row.state not in FINAL and row.state is not JobState.DEAD:
                raise NotYet from None  # its start has not been delivered yet

    async def _order(self, row: OutboxRow) -> None:
        order = self._as_order(row)
        if not await self._ledger.dead_letters.still_requested(row.job_id, order.generation):
            return
        update = AgentJob.redrive if order.action == "redrive" else AgentJob.discard
        if not await self._updated(row, update, order, f"{order.action}-{order.generation}"):
            # The workflow is gone (terminated, deleted, or never started): a new run goes by the receipts.
            progress = await self._progress_after(row, order)
            await self._start_workflow(row, WorkflowIDReusePolicy.ALLOW_DUPLICATE, order=order, progress=progress)

    async def _tell_decision(self, row: OutboxRow) -> None:
        # A job that does not wait any more has read the decision in the ledger, or has ended. One whose workflow
        # is gone is found by the watchdog.
        if row.state is JobState.WAITING_APPROVAL:
            word = ApprovalWord(step=row.payload["step"], fingerprint=row.payload["fingerprint"])
            await self._updated(row, AgentJob.decide, word, f"decide-{row.id}")

    async def _progress_after(self, row: OutboxRow, order: Order) -> Progress:
        """How far a job had come whose workflow is gone, by what the ledger knows.

        A redrive meets each receipt again on its way; what it did is noted to be undone, should it be cancelled
        before. But where an undo has begun, or a cancel was promised, the job only goes on to be undone: what was
        undone would be done a second time.
        """
        effects = await self._ledger.jobs.effects(row.job_id)
        undoing = row.cancelling or any(effect.kind is EffectKind.UNDO for effect in effects)
        to_undo = tuple(
            effect.step
            for effect in effects
            if effect.kind is EffectKind.TOOL and effect.effect_class is not EffectClass.READ_ONLY
        )
        goal = Goal.CANCEL if order.action == "redrive" and undoing else Goal.ANSWER
        return Progress(goal=goal, to_undo=to_undo)

    async def _updated(
        self, row: OutboxRow, update: UpdateMethodMultiParam[[AgentJob, W], None], word: W, update_id: str
    ) -> bool:
        """Give the job's workflow this word. False when the workflow is gone; raises NotYet."""
        handle = self._client.get_workflow_handle_for(AgentJob.run, keys.workflow_id(row.job_id))
        try:
            await handle.execute_update(update, word, id=update_id, rpc_timeout=RPC_TIMEOUT)
        except WorkflowUpdateFailedError:
            raise NotYet from None  # so in the ledger, but its workflow has not come so far yet
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            # No worker, or a stuck workflow: the watchdog ends such a run, and the next try finds it gone.
            raise NotYet from None
        except RPCError as error:
            if error.status is RPCStatusCode.FAILED_PRECONDITION:
                raise NotYet from None  # its workflow task fails just now
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    def _as_order(self, row: OutboxRow) -> Order:
        wanted_current = row.payload.get("policy") == "current"
        version = self._agents.current(row.agent).policy_version if wanted_current else row.policy_version
        return Order(
            action="redrive" if row.topic is Topic.REDRIVE_JOB else "discard",
            generation=row.payload["generation"],
            policy_version=version,
            max_steps=self._max_steps(row, version),
            again=bool(row.payload.get("again", False)),
        )

    async def tell_desk(self, rows: Sequence[OutboxRow]) -> None:
        """Tell the desk of these deaths and requests for approvals, all of one tenant. Raises RPCError."""
        deaths = [_notice(row) for row in rows if row.topic is Topic.JOB_DIED]
        if deaths:
            await self._signal_desk(rows[0].tenant, "jobs_died", deaths)
        if len(deaths) < len(rows):
            await self._signal_desk(rows[0].tenant, "approvals_requested")

    async def _signal_desk(self, tenant: str, signal: str, *args: object) -> None:
        await self._client.start_workflow(
            DeadLetterDesk.run,
            DeskStart(tenant=tenant, in_batches=True),
            id=keys.desk_id(tenant),
            task_queue=self._task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=signal,
            start_signal_args=args,
            search_attributes=TypedSearchAttributes([SearchAttributePair(TENANT, tenant)]),
            static_summary="dead letters",
            static_details=f"Tenant `{tenant}`. `python starter.py dead list` shows the letters.",
            priority=Priority(fairness_key=tenant),
            rpc_timeout=RPC_TIMEOUT,
        )


def _notice(row: OutboxRow) -> DeathNotice:
    return DeathNotice(
        job_id=row.job_id,
        generation=row.payload["generation"],
        agent=row.payload["agent"],
        reason=row.payload["reason"],
    )


def _details(row: OutboxRow) -> str:
    # What the Temporal UI shows for good, as Markdown: where to look on, and nothing of what anybody wrote.
    return (
        f"Tenant `{row.tenant}`, priority {row.priority}, deadline {row.deadline_at:%Y-%m-%d %H:%M:%S} UTC.\n\n"
        f"`python starter.py status {row.job_id}` shows where it stands, "
        f"`python starter.py attempts {row.job_id}` what it cost."
    )


def _search_attributes(row: OutboxRow) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [
            SearchAttributePair(JOB_STATE, JobState.RUNNING.value),
            SearchAttributePair(TENANT, row.tenant),
            SearchAttributePair(AGENT, row.agent),
        ]
    )
