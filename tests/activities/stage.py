"""Activities carried out on a real ledger without a worker, and destinations that count what reaches them."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.executor import Executor, LookUp, Reply, Work
from activities.inputs import JobRef, ToolStep, UndoStep
from activities.run_tool import ToolRuns
from agentjobs.agents.catalogue import built_in_agents
from agentjobs.domain import keys
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.job import Frozen
from agentjobs.failpoints import Failpoints
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun
from agentjobs.tools.catalogue import built_in_tools
from agentjobs.tools.tool import ToolRegistry
from agentjobs.trackers.postgres import PostgresTracker
from tests.ledger.scene import CREATE_TICKET, Scene
from tests.world import NoFence

T = TypeVar("T")


class Receipt(Frozen):
    """What a destination answers: its number of the call."""

    call: int


@dataclass
class Destination:
    """The outside of an effect. `answer` says what becomes of the call of this number, counted from 1."""

    answer: Callable[[int], BaseModel | Exception] = lambda number: Receipt(call=number)
    calls: int = 0

    async def __call__(self, begun: Begun, connection: Connection | None) -> Reply:
        """One call."""
        self.calls += 1
        answer = self.answer(self.calls)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer)


@dataclass(frozen=True)
class Attempt:
    """Which try of its activity this is, and what surrounds it."""

    number: int = 1
    failpoints: Failpoints = field(default_factory=Failpoints)
    start_to_close: timedelta = timedelta(seconds=60)
    heartbeat: timedelta | None = None

    def environment(self, step: str) -> ActivityEnvironment:
        """As a worker would set it up."""
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info,
            activity_id=step,
            activity_type="in_a_test",
            attempt=self.number,
            start_to_close_timeout=self.start_to_close,
            heartbeat_timeout=self.heartbeat,
        )
        return environment


FIRST = Attempt()
SECOND = Attempt(number=2)


def failing_at(failpoint: str, number: int = 1) -> Attempt:
    """An attempt that something we depend on fails at this place."""
    return Attempt(number=number, failpoints=Failpoints.parse(f"{failpoint}=raise"))


@dataclass(frozen=True)
class Stage:
    """The activities' side of a scene."""

    scene: Scene

    async def carry_out(
        self,
        job_id: str,
        call: Callable[[Begun, Connection | None], Awaitable[Reply]],
        effect_class: EffectClass = EffectClass.IDEMPOTENT,
        attempt: Attempt = FIRST,
        *,
        look_up: LookUp | None = None,
        horizon_seconds: float = 0.0,
        environment: ActivityEnvironment | None = None,
        **intent: Any,
    ) -> dict[str, Any]:
        """One attempt of an effect of this class."""
        executor = Executor(self.scene.ledger, attempt.failpoints, NoFence())
        step = intent.pop("step", CREATE_TICKET)

        async def activity() -> dict[str, Any]:
            given = {"kind": EffectKind.TOOL, "name": "create_ticket", "fingerprint": "f" * 64, **intent}
            intended = executor.intent(step, JobRef(**reference(job_id)), effect_class=effect_class, **given)
            return await executor.carry_out(intended, Work(call, look_up, horizon_seconds))

        result: dict[str, Any] = await (environment or attempt.environment(step)).run(activity)
        return result

    def tool_runs(self, attempt: Attempt = FIRST, tools: ToolRegistry | None = None) -> ToolRuns:
        """The tool activities over the built-in tracker."""
        ledger = self.scene.ledger
        executor = Executor(ledger, attempt.failpoints, NoFence())
        registry = tools or built_in_tools(PostgresTracker(ledger.tickets))
        return ToolRuns(executor, ledger, built_in_agents(), registry)

    async def ask(self, job_id: str, tool: str, arguments: dict[str, Any], step: int = 1) -> WantedTool:
        """The model asks for this tool call, and its reply is stored."""
        reply = {"decision": {"tool": tool, "arguments": arguments}}
        model = {"kind": EffectKind.MODEL, "name": "model", "effect_class": EffectClass.READ_ONLY}
        await self.scene.done(job_id, keys.model_step(step), reply, **model)
        return WantedTool(tool=tool, fingerprint=keys.fingerprint_of_call(tool, arguments), undoable=True)

    async def run_tool(
        self,
        job_id: str,
        wanted: WantedTool,
        attempt: Attempt = FIRST,
        *,
        step: int = 1,
        tools: ToolRegistry | None = None,
    ) -> None:
        """One attempt of the tool call that the model asked for."""
        given = ToolStep(**reference(job_id), step=step, wanted=wanted)
        environment = attempt.environment(keys.tool_step(step, wanted.tool))
        await environment.run(self.tool_runs(attempt, tools).run_tool, given)

    async def undo(
        self, job_id: str, undone: str = CREATE_TICKET, attempt: Attempt = FIRST, tools: ToolRegistry | None = None
    ) -> str:
        """One attempt of the compensation; its outcome."""
        given = UndoStep(**reference(job_id), undone=undone, tool=keys.tool_of(undone))
        environment = attempt.environment(keys.undo_step(undone))
        outcome: str = await environment.run(self.tool_runs(attempt, tools).undo_tool, given)
        return outcome


def reference(job_id: str) -> dict[str, str]:
    """The job as activities are told of it."""
    return JobRef(job_id=job_id, agent="support-triage", policy_version="1").model_dump()


async def failed(attempt: Awaitable[object]) -> ApplicationError:
    """What the attempt told Temporal when it failed."""
    with pytest.raises(ApplicationError) as raised:
        await attempt
    return raised.value


async def told(attempt: Awaitable[object]) -> tuple[str | None, bool]:
    """The same in short: its type, and whether Temporal may try again."""
    error = await failed(attempt)
    return error.type, not error.non_retryable
