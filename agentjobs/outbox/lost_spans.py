"""Spans that a worker would have told of, had it lived: the relay, which finds out, tells them in its place."""

from datetime import UTC
from typing import Final

from temporalio.api.workflow.v1 import PendingActivityInfo

from agentjobs.domain.states import JobState
from agentjobs.ledger.jobs import JobTrace
from agentjobs.tracing import contexts, spans
from agentjobs.tracing.runs import Attempt, Run, start_of

WORKER_LOST: Final = "worker_lost"


def attempt_lost(job: JobTrace, workflow_run_id: str, activity: PendingActivityInfo) -> None:
    """The attempt ended now, with its worker. (Should that have told of it after all, it is the same span.)"""
    kind = activity.activity_type.name
    if kind == "record_death":
        return  # whether it has counted the death already, and so of which run it was, is not known here
    started_at = activity.last_started_time.ToDatetime(tzinfo=UTC)
    attempt = Attempt(
        run=_run(job, job.generation),
        activity=kind,
        step=activity.activity_id,
        number=activity.attempt,
        workflow_run_id=workflow_run_id,
        started_at=started_at,
    )
    span = attempt.begun(at=started_at)
    spans.failed(span, WORKER_LOST)
    span.end()


def run_lost(job: JobTrace, generation: int, reason: str) -> None:
    """The run that began after so many deaths has ended in another one, which its workflow could not record."""
    run = _run(job, generation).model_copy(update={"began_at": job.dispatched_at if generation == 0 else None})
    run.ended(JobState.DEAD, reason)


def _run(job: JobTrace, generation: int) -> Run:
    start = start_of(job.trace_id, job.job_id, sampled=job.trace_sampled is not False)
    return Run(
        told_by=contexts.written(start),
        job_id=job.job_id,
        tenant=job.tenant,
        agent=job.agent,
        generation=generation,
    )
