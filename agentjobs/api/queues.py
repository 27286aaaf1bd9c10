"""Route of queues: what is pending, and where."""

from fastapi import APIRouter

from agentjobs.api.authentication import Anyone, visible_user
from agentjobs.api.declared import problems
from agentjobs.api.parts import LedgerPart
from agentjobs.api.queue_schemas import (
    InstallationShown,
    NextShown,
    OutboxShown,
    QueuesShown,
    StageShown,
    TaskQueueShown,
    WorkerShown,
)
from agentjobs.api.strict_route import StrictRoute
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import JobRecord

router = APIRouter(prefix="/v1/queues", tags=["jobs"], route_class=StrictRoute)

NEXT = 10
"""Enough to see what is about to move; `GET /v1/waiting` has all."""


@router.get(
    "",
    response_model=QueuesShown,
    operation_id="readQueues",
    summary="What is pending, and where",
    responses=problems(),
)
async def queues(caller: Anyone, ledger: LedgerPart) -> QueuesShown:
    """Your own jobs; with the role review or admin, the tenant's. The first admin key sees the installation."""
    user = visible_user(caller)
    stages = await ledger.queues.stages(caller.tenant, user=user)
    waiting = await ledger.waits.waiting(caller.tenant, user=user, limit=NEXT)
    sees_all = await ledger.identity.may_make_tenants(caller.key_id)
    return QueuesShown(
        stages=[StageShown(**one.model_dump()) for one in stages],
        next=[_next(job) for job in waiting],
        installation=await _installation(ledger) if sees_all else None,
        links={"self": "/v1/queues", "waiting": "/v1/waiting"},
    )


def _next(job: JobRecord) -> NextShown:
    return NextShown(
        job_id=job.id,
        step=job.step,
        attempt=job.attempt,
        category=None if job.failure is None else job.failure.category,
        next_attempt_at=job.next_attempt_at,
    )


async def _installation(ledger: Ledger) -> InstallationShown:
    return InstallationShown(
        outbox=[OutboxShown(**one.model_dump()) for one in await ledger.queues.outbox()],
        workers=[WorkerShown(**one.model_dump()) for one in await ledger.queues.workers()],
        task_queues=[TaskQueueShown(**one.model_dump()) for one in await ledger.queues.task_queues()],
    )
