"""The looks of a watchdog that has no patience: nothing needs to have stood still for a while."""

from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentjobs.domain import keys
from agentjobs.outbox.leftover_workflows import LeftoverWorkflows
from agentjobs.outbox.lost_words import LostWords
from agentjobs.outbox.overdue_jobs import OverdueJobs
from agentjobs.outbox.stuck_workflows import StuckWorkflows
from agentjobs.outbox.task_queue import TaskQueueWatch
from agentjobs.outbox.unmoved_jobs import UnmovedJobs
from tests.world import World, eventually


@dataclass(frozen=True)
class Looks:
    """One relay's looks."""

    stuck: StuckWorkflows
    unmoved: UnmovedJobs
    overdue: OverdueJobs
    words: LostWords
    leftovers: LeftoverWorkflows
    queue: TaskQueueWatch

    async def all_once(self) -> int:
        """Every look that settles something, once."""
        looks = (self.stuck, self.unmoved, self.overdue, self.words, self.leftovers)
        return sum([await look.run_once() for look in looks])


def looks_of(world: World, *, window: int = 1000, client: Client | None = None) -> Looks:
    """The looks over this world, by its own client or another one."""
    client = client or world.client
    stuck = StuckWorkflows(world.ledger, client, world.tenant)
    return Looks(
        stuck=stuck,
        unmoved=UnmovedJobs(world.ledger, client, stuck, still_seconds=0, window=window),
        overdue=OverdueJobs(world.ledger, grace_seconds=0),
        words=LostWords(world.ledger, client, still_seconds=0),
        leftovers=LeftoverWorkflows(world.ledger, client, world.tenant, grace_seconds=0),
        queue=TaskQueueWatch(world.ledger, client, world.tenant, still_seconds=0),
    )


async def delete(world: World, job_id: str) -> None:
    """Delete the job's workflow by hand, history and all; returns when Temporal knows nothing of it."""
    execution = WorkflowExecution(workflow_id=keys.workflow_id(job_id))
    await world.client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=world.client.namespace, workflow_execution=execution)
    )

    async def unknown() -> bool:
        try:
            await world.workflow(job_id).describe()
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND
        return False

    await eventually(unknown, "the workflow to be deleted")


async def deaths_of(world: World, job_id: str) -> list[str]:
    """The reasons of all deaths of the job, in their order."""
    rows = await world.ledger.database.pool.fetch(
        "SELECT reason FROM deaths WHERE job_id = $1 ORDER BY generation", job_id
    )
    return [row["reason"] for row in rows]
