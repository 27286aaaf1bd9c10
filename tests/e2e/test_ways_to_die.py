"""The relay's own watchdog, at its own pace, among other jobs that go on, while servers and programs die."""

import json
import time
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client

from agentjobs.domain import keys
from agentjobs.domain.states import JobState
from agentjobs.ledger.comparing import FindingKind
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import JobRecord
from agentjobs.stack.postgres import EmbeddedPostgres
from agentjobs.temporal import DATA_CONVERTER
from tests.e2e.conftest import Running, options_for, started
from tests.world import OVER, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]

WITHIN_SECONDS = 60


async def delete(client: Client, job_id: str) -> None:
    """Delete the job's workflow, as a person might."""
    execution = WorkflowExecution(workflow_id=keys.workflow_id(job_id))
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    )


async def until(ledger: Ledger, job_id: str, *states: JobState) -> JobRecord:
    """The job, once it is in one of these states, or over."""

    async def look() -> JobRecord | None:
        job = await ledger.jobs.read("dev", job_id)
        return job if job is not None and job.state in (states or OVER) else None

    return await eventually(look, f"job {job_id} to be in {states or OVER}")


async def deaths(ledger: Ledger) -> list[tuple[str, str]]:
    """(job, reason) of every death there was."""
    rows = await ledger.database.pool.fetch("SELECT job_id, reason FROM deaths ORDER BY died_at")
    return [(row["job_id"], row["reason"]) for row in rows]


async def temporal_of(running: Running) -> Client:
    """A client of the stack's Temporal."""
    return await Client.connect(running.stack.info.temporal, data_converter=DATA_CONVERTER)


async def test_a_deleted_job_is_found_among_others_while_the_servers_are_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home: Path = tmp_path_factory.mktemp("deleted")
    async with started(options_for(home, AGENTJOBS_FAILPOINTS="tool.after_commit=hang@1")) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        running = Running(stack, ledger, home)
        deleted = await running.submit("My printer is on fire")
        key = keys.step_key(deleted, "step-2.create_ticket")

        async def committed() -> bool:
            return bool(await ledger.tickets.of_operation(key))

        await eventually(committed, "the ticket")
        others = [await running.submit(f"My mouse is lame, case {number}") for number in range(5)]
        await delete(await temporal_of(running), deleted)
        # Its worker hangs in the deleted job's call, and both servers go away while it is looked for.
        for victim in ("worker-1", "temporal", "postgres"):
            await stack.kill(victim)
            await stack.until_ready(victim)

        ends = [await until(ledger, job_id) for job_id in others]
        letter = await until(ledger, deleted, JobState.DEAD)
        found = await deaths(ledger)
        redriven = await running.starter("dead", "redrive", deleted, "--note", "deleted by mistake")
        await until(ledger, deleted, JobState.SUCCEEDED)
        tickets = await ledger.tickets.of_operation(key)
        await ledger.close()

    assert [job.state for job in ends] == [JobState.SUCCEEDED] * 5
    assert letter.failure is not None
    assert letter.failure.message.startswith("its workflow is gone")
    assert found == [(deleted, "terminated")]
    assert redriven.code == 0, redriven.err
    assert len(tickets) == 1
    EmbeddedPostgres(home, 1).remove()


async def test_a_stack_without_workers_says_so_within_a_minute(tmp_path_factory: pytest.TempPathFactory) -> None:
    home: Path = tmp_path_factory.mktemp("without-workers")
    async with started(options_for(home, workers=0)) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        await Running(stack, ledger, home).submit("My printer is on fire")
        submitted = time.monotonic()

        async def found() -> bool:
            return FindingKind.NO_WORKER in {finding.kind for finding in await ledger.comparing.findings()}

        await eventually(found, "the finding")
        took = time.monotonic() - submitted
        await ledger.close()
        told = [json.loads(line) for line in (home / "logs" / "relay.log").read_text().splitlines() if "{" in line]

    assert took < WITHIN_SECONDS
    assert [entry["level"] for entry in told if entry["event"] == "no_worker"] == ["error"]
    EmbeddedPostgres(home, 1).remove()
