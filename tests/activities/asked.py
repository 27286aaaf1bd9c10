"""Model activities over a provider that a test plays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from activities.asking import Access
from activities.executor import Executor, Present
from activities.inputs import JobRef
from activities.model_calls import ModelCalls
from agentjobs.agents.catalogue import built_in_agents
from agentjobs.domain import keys
from agentjobs.domain.admission import Limits
from agentjobs.providers.model import Answer, AnswerReply, Brief, Listener, ModelProvider, Plan, PlanReply
from agentjobs.providers.models import Models
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.trackers.postgres import PostgresTracker
from tests.activities.stage import FIRST, Attempt, Stage, reference
from tests.fakes import USAGE, ScriptedProvider
from tests.world import NoFence


async def nothing(_brief: Brief, _listener: Listener) -> None:
    """A call of which nothing is told before its end."""


class PlayedProvider(ScriptedProvider):
    """Does what `play` does in each call, and then answers; keeps what it was told."""

    def __init__(
        self, play: Callable[[Brief, Listener], Awaitable[None]] = nothing, name: str = "scripted"
    ) -> None:
        super().__init__()
        self._play = play
        self.name = name

    async def plan(self, brief: Brief, listener: Listener | None = None) -> PlanReply:
        """Play, then plan."""
        await self._played(brief, listener)
        plan = Plan(language="en", category="incident", urgency="high", subject="Printer", steps=())
        return PlanReply(plan=plan, model=self.name, usage=USAGE)

    async def answer(self, brief: Brief, listener: Listener | None = None) -> AnswerReply:
        """Play, then answer."""
        await self._played(brief, listener)
        return AnswerReply(answer=Answer(text="Thank you."), model=self.name, usage=USAGE)

    async def _played(self, brief: Brief, listener: Listener | None) -> None:
        if listener is None:
            raise AssertionError("a provider is always given somebody to tell")
        self.briefs.append(brief)
        await self._play(brief, listener)


def model_calls(
    stage: Stage, models: dict[str, ModelProvider], attempt: Attempt = FIRST, present: Present | None = None
) -> ModelCalls:
    """The model activities of a worker, with these models in this order."""
    ledger = stage.scene.ledger
    executor = Executor(ledger, attempt.failpoints, present or NoFence())
    access = Access(Models(tuple(models), models.__getitem__), ledger, Limits())
    return ModelCalls(executor, access, built_in_agents(), built_in_tools(PostgresTracker(ledger.tickets)))


async def ask_for_plan(stage: Stage, job_id: str, *providers: PlayedProvider, attempt: Attempt = FIRST) -> Any:
    """One attempt to plan, with these models in this order."""
    calls = model_calls(stage, _named(providers), attempt)
    return await attempt.environment(keys.PLAN).run(calls.plan, JobRef(**reference(job_id)))


async def ask_for_answer(stage: Stage, job_id: str, *providers: PlayedProvider, attempt: Attempt = FIRST) -> Any:
    """One attempt to answer, with these models in this order."""
    calls = model_calls(stage, _named(providers), attempt)
    return await attempt.environment(keys.ANSWER).run(calls.write_answer, JobRef(**reference(job_id)))


def _named(providers: tuple[PlayedProvider, ...]) -> dict[str, ModelProvider]:
    return {provider.name: provider for provider in providers}
