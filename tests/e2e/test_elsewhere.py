"""Tickets at another system: the worker is killed when the ticket is there, and before anybody has noted it."""

from pathlib import Path

import pytest

from agentjobs.domain.states import JobState
from agentjobs.ledger.ledger import Ledger
from agentjobs.stack.postgres import EmbeddedPostgres
from tests.e2e.conftest import Running, options_for, started
from tests.trackers.github_double import REPOSITORY, TOKEN, GithubDouble
from tests.trackers.roundup_server import PASSWORD, USER, RoundupServer
from tests.world import eventually

pytestmark = pytest.mark.e2e

# The fifth call of a triage opens the ticket: plan, model, search, model, ticket.
KILLED_AFTER_THE_TICKET = "effect.after_call=kill@5"


async def killed_after_the_ticket(home: Path, **settings: str) -> tuple[str, bool]:
    """The step key of a job's ticket, and whether its worker really died; the job has succeeded all the same."""
    options = options_for(home, 1, AGENTJOBS_FAILPOINTS=KILLED_AFTER_THE_TICKET, **settings)
    async with started(options) as stack:
        ledger = await Ledger.open(stack.info.database, size=2, application_name="tests")
        first_worker = stack.info.pids["worker-1"]
        job_id = await Running(stack, ledger, home).submit("My printer is on fire")

        async def succeeded() -> bool:
            job = await ledger.jobs.read("dev", job_id)
            return job is not None and job.state is JobState.SUCCEEDED

        await eventually(succeeded, "the job to succeed")
        died = stack.info.pids["worker-1"] != first_worker
        await ledger.close()
    EmbeddedPostgres(home, 1).remove()
    return f"agent-job-{job_id}/step-2.create_ticket", died


async def test_roundup_has_one_ticket(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with RoundupServer.running() as server:
        key, died = await killed_after_the_ticket(
            tmp_path_factory.mktemp("roundup"),
            AGENTJOBS_TRACKER="roundup",
            AGENTJOBS_ROUNDUP_URL=server.url,
            AGENTJOBS_ROUNDUP_USER=USER,
            AGENTJOBS_ROUNDUP_PASSWORD=PASSWORD,
        )
        issues = server.issues(key)

    assert died
    assert len(issues) == 1


async def test_github_has_one_issue(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with GithubDouble.running() as double:
        key, died = await killed_after_the_ticket(
            tmp_path_factory.mktemp("github"),
            AGENTJOBS_TRACKER="github",
            AGENTJOBS_GITHUB_REPOSITORY=REPOSITORY,
            AGENTJOBS_GITHUB_TOKEN=TOKEN,
            AGENTJOBS_GITHUB_API_URL=double.base_url,
        )
        issues = double.having(key)

    assert died
    assert len(issues) == 1
