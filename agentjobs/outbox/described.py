"""A job's workflow as Temporal describes it. Visibility only hints; this is what conclusions are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus, WorkflowTaskFailedCause
from temporalio.api.errordetails.v1 import NotFoundFailure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

RPC_TIMEOUT: Final = timedelta(seconds=5)

STUCK_AT_ATTEMPT: Final = 5
"""Four tries of the same workflow task came to nothing: the server spreads them over 10 to 35 s. A worker that
dies or is being replaced costs one or two."""

TIMED_OUT_AT_ATTEMPT: Final = 15
"""A task that times out may be in the hands of a frozen or overloaded worker, so it is given minutes."""

HISTORY_TAIL: Final = 20

_CAUSE = WorkflowTaskFailedCause
_HARMLESS: Final = frozenset(
    {
        # The server's own doing, or a result that came in between: the next try goes through.
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND,
        _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_PAUSE_REQUESTED_BEFORE_TASK_STARTED,
    }
)
_IN_WORDS: Final = {
    _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR: "nondeterminism: its history does not fit the code",
    _CAUSE.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE: "an exception in the workflow's code",
}
_ENDED: Final = {
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED: "completed",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED: "failed",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED: "canceled",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "timed_out",
}
"""Every other status, also one that a later server invents, is of a run that has not ended."""


@dataclass(frozen=True)
class Described:
    """The latest run. `attempt` is of the workflow task that is under way, 0 when none is."""

    workflow_id: str
    run_id: str
    ended: str | None
    """How it ended, None while it is open. (One that is paused is open.)"""
    cancel_requested: bool
    attempt: int


async def described(client: Client, workflow_id: str) -> Described | None:
    """The workflow's latest run; None when the namespace has none of this id. Raises RPCError for all else."""
    # The raw call: the client's own knows no paused workflow (sdk-python 1.35).
    request = DescribeWorkflowExecutionRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
    )
    try:
        found = await client.workflow_service.describe_workflow_execution(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if says_no_such_workflow(error):
            return None
        raise
    return _as_described(found)


def says_no_such_workflow(error: RPCError) -> bool:
    """NOT_FOUND of the workflow itself: a namespace that is not there has another detail, and proves nothing."""
    details = error.grpc_status.details if error.status is RPCStatusCode.NOT_FOUND else ()
    return any(detail.Is(NotFoundFailure.DESCRIPTOR) for detail in details)


def _as_described(found: DescribeWorkflowExecutionResponse) -> Described:
    run = found.workflow_execution_info
    return Described(
        workflow_id=run.execution.workflow_id,
        run_id=run.execution.run_id,
        ended=_ENDED.get(run.status),
        cancel_requested=found.workflow_extended_info.cancel_requested,
        attempt=found.pending_workflow_task.attempt,
    )


async def why_stuck(client: Client, workflow: Described) -> str | None:
    """What its workflow task fails of again and again, in words without content; None when it does not."""
    if workflow.ended or workflow.attempt < STUCK_AT_ATTEMPT:
        return None
    last = await _last_task_event(client, workflow)
    if last is not None and last.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
        cause = last.workflow_task_failed_event_attributes.cause
        return None if cause in _HARMLESS else _told(_in_words(cause), workflow)
    return _told("no answer in time", workflow) if workflow.attempt >= TIMED_OUT_AT_ATTEMPT else None


def _told(cause: str, workflow: Described) -> str:
    return f"{cause}; the workflow task came to nothing {workflow.attempt - 1} times"


def _in_words(cause: WorkflowTaskFailedCause.ValueType) -> str:
    name = WorkflowTaskFailedCause.Name(cause).removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
    return _IN_WORDS.get(cause, name.lower().replace("_", " "))


async def _last_task_event(client: Client, workflow: Described) -> HistoryEvent | None:
    # Of a series of failures only the first is in the history: what comes after it are tries of the same task.
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow.workflow_id, run_id=workflow.run_id),
        maximum_page_size=HISTORY_TAIL,
    )
    tail = await client.workflow_service.get_workflow_execution_history_reverse(request, timeout=RPC_TIMEOUT)
    return next((event for event in tail.history.events if event.event_type in _TASK_IS_OVER), None)


_TASK_IS_OVER: Final = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    }
)


async def end(client: Client, workflow: Described, reason: str) -> None:
    """Terminate this run and no later one. That it has ended meanwhile is as well. Raises RPCError."""
    handle = client.get_workflow_handle(workflow.workflow_id, run_id=workflow.run_id)
    try:
        await handle.terminate(reason=reason, rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
