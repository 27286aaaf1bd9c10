"""A killed worker's jobs go on at once; a frozen one's come back to no second effect."""

import time

import pytest

from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.e2e.conftest import Running, options_for, started
from tests.world import eventually

pytestmark = pytest.mark.e2e

HEARTBEAT_TIMEOUT_SECONDS = 10


async def test_a_killed_workers_jobs_do_not_wait_for_its_heartbeats(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("takeover")
    options = options_for(home, AGENTJOBS_FAILPOINTS="tool.after_commit=hang@1")

    async with started(options) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        job_id = await Running(stack, ledger, home).submit("My printer is on fire")
        key = f"agent-job-{job_id}/step-2.create_ticket"

        async def committed() -> bool:
            effect = await ledger.effects.read(key)
            return effect is not None and effect.result is not None

        await eventually(committed, "the ticket")
        await stack.kill("worker-1")
        killed = time.monotonic()

        async def succeeded() -> bool:
            job = await ledger.jobs.read("dev", job_id)
            return job is not None and job.state is JobState.SUCCEEDED

        await eventually(succeeded, "the job to succeed")
        took = time.monotonic() - killed
        tickets = await ledger.tickets.of_operation(key)
        await ledger.close()

    assert len(tickets) == 1
    assert took < HEARTBEAT_TIMEOUT_SECONDS  # the second line was not needed
    EmbeddedPostgres(home, 1).remove()
