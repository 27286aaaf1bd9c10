"""One tenant's world in a test: submit jobs, run workers and the relay, wait for what becomes of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar
from uuid import uuid4

from temporalio.client import Client, WorkflowHandle

from agentjobs.agents.catalogue import built_in_agents
from agentjobs.agents.spec import AgentRegistry
from agentjobs.agents.support_triage import SUPPORT_TRIAGE
from agentjobs.domain import keys
from agentjobs.domain.job import Budget, Principal
from agentjobs.domain.states import JobState
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.dead_letters import Action
from agentjobs.ledger.jobs import Submission
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import DeadLetterRecord, JobRecord
from agentjobs.outbox.delivery import Delivery
from agentjobs.outbox.relay import Relay
from agentjobs.providers.model import ModelProvider
from agentjobs.providers.models import Models
from agentjobs.settings import Environment, Settings
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tickets import TICKETS_CREATE
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from agentjobs.wanted import Wanted
from tests.fakes import ScriptedProvider
from worker import build_worker

T = TypeVar("T")
_numbers = count(1)
PATIENCE_SECONDS = 150
OVER = (JobState.SUCCEEDED, JobState.CANCELLED, JobState.DISCARDED, JobState.DEAD)


async def a_moment() -> None:
    """Between two looks."""
    await asyncio.sleep(0.02)


async def eventually(
    look: Callable[[], Awaitable[T | None]], what: str, between: Callable[[], Awaitable[None]] = a_moment
) -> T:
    """Look again and again until there is something; fail with `what` when patience ends."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = await look()
                if found:
                    return found
                await between()
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


class NoFence:
    """A worker that registers nowhere: nobody takes over from it."""

    id = "in-this-test"

    def __init__(self) -> None:
        self._wanted = Wanted()
        self.while_wanted = self._wanted.while_wanted
        self.no_longer = self._wanted.no_longer


@dataclass
class World:
    """A tenant `tenant` with a user `ann` who may create tickets."""

    ledger: Ledger
    client: Client
    tenant: str
    agents: AgentRegistry = field(default_factory=built_in_agents)
    failpoints: str = ""
    cached_workflows: int = 100
    environment: Environment = Environment.TEST
    """Elsewhere workflows run without the sandbox, as in production."""

    between: Callable[[], Awaitable[None]] = a_moment
    """What happens between two looks: on the test server, time is skipped."""

    @classmethod
    async def made(cls, ledger: Ledger, client: Client) -> "World":
        """A new tenant; its task queue has the same name, so no other test's worker takes its work."""
        world = cls(ledger, client, f"tenant-{next(_numbers)}-{uuid4().hex[:6]}")
        await ledger.identity.create_tenant(world.tenant)
        await world.grant("ann")
        return world

    async def grant(self, user: str) -> None:
        """Let the user create tickets."""
        await self.ledger.identity.add_grant(self.tenant, user, TICKETS_CREATE, granted_by="test")

    async def submit(
        self,
        text: str = "My printer is on fire",
        *,
        user: str = "ann",
        agent: str = SUPPORT_TRIAGE.name,
        deadline_seconds: int = 3600,
        budget: Budget | None = None,
        key: str | None = None,
    ) -> str:
        """Accept a job, as the API would; returns its id."""
        submission = Submission(
            id=str(uuid4()),
            principal=Principal(tenant=self.tenant, user=user),
            agent=agent,
            policy_version=self.agents.current(agent).policy_version,
            origin="test",
            text=text,
            priority=3,
            budget=budget or Budget(),
            deadline_seconds=deadline_seconds,
            key=key,
            fingerprint=keys.fingerprint({"text": text}),
        )
        return (await self.ledger.jobs.accept(submission)).id

    async def job(self, job_id: str) -> JobRecord:
        """The job as it stands."""
        record = await self.ledger.jobs.read(self.tenant, job_id)
        assert record is not None
        return record

    async def until(self, job_id: str, *states: JobState) -> JobRecord:
        """The job, once it is in one of these states (or over, if none is given)."""

        async def look() -> JobRecord | None:
            record = await self.job(job_id)
            return record if record.state in (states or OVER) else None

        return await eventually(look, f"job {job_id} to be in {[*states] or 'an end state'}", self.between)

    async def until_alerted(self, job_id: str, generation: int = 1) -> DeadLetterRecord:
        """The job's dead letter of this generation, once somebody was told."""

        async def look() -> DeadLetterRecord | None:
            letter = await self.ledger.dead_letters.read(self.tenant, job_id)
            told = letter is not None and letter.generation == generation and letter.alerted_at is not None
            return letter if told else None

        return await eventually(look, f"an alert for job {job_id}, generation {generation}", self.between)

    async def order(self, action: Action, job_id: str, policy: str = "original") -> None:
        """A reviewer's word on a dead job."""
        payload = {"policy": policy} if action == "redrive" else {}
        accepted = await self.ledger.dead_letters.request(
            action, self.tenant, job_id, actor="reviewer", note="in a test", payload=payload
        )
        assert accepted

    async def cancel(self, job_id: str) -> JobState:
        """The owner's wish to cancel."""
        state = await self.ledger.jobs.request_cancel(self.tenant, job_id, user=None, actor="ann")
        assert state is not None
        return state

    def workflow(self, job_id: str) -> WorkflowHandle[object, object]:
        """The job's workflow."""
        return self.client.get_workflow_handle(keys.workflow_id(job_id))

    def relay(self) -> Relay:
        """A relay over this world."""
        delivery = Delivery(self.client, self.ledger, self.agents, self.tenant)
        return Relay(self.ledger, delivery, Failpoints.parse(self.failpoints))

    @asynccontextmanager
    async def running(
        self, provider: ModelProvider | None = None, tools: ToolRegistry | None = None
    ) -> AsyncIterator[None]:
        """A worker and a relay while the block runs."""
        worker = build_worker(
            self.client,
            self.ledger,
            self._settings(),
            present=NoFence(),
            identity=self.tenant,
            models=Models(("scripted",), lambda _: provider or ScriptedProvider()),
            agents=self.agents,
            tools=tools or built_in_tools(PostgresTracker(self.ledger.tickets)),
        )
        async with worker:
            relaying = asyncio.create_task(self.relay().run())
            try:
                yield
            finally:
                relaying.cancel()
                await asyncio.gather(relaying, return_exceptions=True)

    def _settings(self) -> Settings:
        return Settings.model_validate(
            {
                "environment": self.environment,
                "database_url": "postgresql://unused",
                "task_queue": self.tenant,
                "failpoints": self.failpoints,
                "worker_cached_workflows": self.cached_workflows,
            }
        )

    async def ticket_count(self) -> int:
        """How many tickets the tenant has, closed ones too."""
        return await self._count("SELECT count(*) FROM tickets WHERE tenant = $1")

    async def open_ticket_count(self) -> int:
        """How many of them are open."""
        return await self._count("SELECT count(*) FROM tickets WHERE tenant = $1 AND state = 'open'")

    async def _count(self, statement: str) -> int:
        number: int = await self.ledger.database.pool.fetchval(statement, self.tenant)
        return number
