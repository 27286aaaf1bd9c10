"""The three model calls of a job: plan, next step, answer. Replies are effects: stored before the activity
returns, so that a crash in between is not paid twice.
"""

from __future__ import annotations

from typing import Any

from temporalio import activity

from activities.executor import Executor, Reply, Work
from activities.failures import judged
from activities.inputs import Decided, Done, JobRef, ModelStep, PlanMade
from agentjobs.agents.spec import AgentRegistry, AgentSpec
from agentjobs.domain import keys
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.job import Frozen
from agentjobs.domain.values import checked
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun, DoneStep, Intent
from agentjobs.providers.model import (
    Brief,
    ModelProvider,
    NothingMore,
    Plan,
    ToolCall,
    ToolDescription,
    ToolResult,
)
from agentjobs.tools.tool import ToolRegistry, UndoableTool, parsed

ARGUMENTS_LIMIT_BYTES = 64 * 1024


class StoredDecision(Frozen):
    """What is kept of a step's model reply."""

    decision: ToolCall | NothingMore


class _Silent:
    async def wrote(self, text: str) -> None:
        """Not kept yet."""

    async def accepted(self, response_id: str) -> None:
        """Not kept yet."""


class ModelCalls:
    """Model calls of one worker."""

    def __init__(
        self, executor: Executor, provider: ModelProvider, agents: AgentRegistry, tools: ToolRegistry
    ) -> None:
        self._executor = executor
        self._provider = provider
        self._agents = agents
        self._tools = tools

    @activity.defn
    async def plan(self, job: JobRef) -> PlanMade:
        """Ask what the request is."""
        spec = self._spec(job)

        async def call(begun: Begun, _: Connection | None) -> Reply:
            reply = await self._provider.plan(self._brief(spec, begun), _Silent())
            return Reply(reply.plan, reply.usage, reply.model)

        stored = await self._executor.carry_out(self._intent(keys.PLAN, job, spec), Work(call))
        plan = Plan.model_validate(stored)
        return PlanMade(language=plan.language, category=plan.category, urgency=plan.urgency)

    @activity.defn
    async def call_model(self, step: ModelStep) -> Decided:
        """Ask for the next step."""
        spec = self._spec(step)

        async def call(begun: Begun, _: Connection | None) -> Reply:
            reply = await self._provider.next_step(self._brief(spec, begun), _Silent())
            # Before it is stored: a reply that cannot be carried out must not be kept and met again.
            self._check(reply.decision, spec)
            return Reply(StoredDecision(decision=reply.decision), reply.usage, reply.model)

        intent = self._intent(keys.model_step(step.step), step, spec)
        stored = StoredDecision.model_validate(await self._executor.carry_out(intent, Work(call), with_done=True))
        return Decided(wanted=self._wanted(stored.decision))

    @activity.defn
    async def write_answer(self, job: JobRef) -> Done:
        """Ask for the answer to the person who asked."""
        spec = self._spec(job)

        async def call(begun: Begun, _: Connection | None) -> Reply:
            reply = await self._provider.answer(self._brief(spec, begun), _Silent())
            return Reply(reply.answer, reply.usage, reply.model)

        await self._executor.carry_out(self._intent(keys.ANSWER, job, spec), Work(call), with_done=True)
        return Done(step=keys.ANSWER)

    def _spec(self, job: JobRef) -> AgentSpec:
        with judged():
            return self._agents.version(job.agent, job.policy_version)

    def _intent(self, step: str, job: JobRef, spec: AgentSpec) -> Intent:
        return self._executor.intent(
            step,
            job.job_id,
            kind=EffectKind.MODEL,
            name="model",
            effect_class=EffectClass.READ_ONLY,
            # What a model is told follows from the job and from earlier receipts, which never change; the
            # policy version may (a redrive chooses one), and must not make a paid reply a conflict.
            fingerprint=keys.fingerprint({"agent": job.agent, "step": step}),
            reserve=spec.call_reservation,
        )

    def _brief(self, spec: AgentSpec, begun: Begun) -> Brief:
        return Brief(
            instructions=spec.instructions,
            text=begun.job.text,
            tools=tuple(self._description(name) for name in spec.tools),
            plan=_plan_of(begun.done),
            done=_tool_results(begun.done),
            remaining_seconds=begun.remaining_seconds,
        )

    def _description(self, name: str) -> ToolDescription:
        tool = self._tools.get(name)
        return ToolDescription(
            name=name, description=tool.description, parameters=tool.arguments.model_json_schema()
        )

    def _check(self, decision: ToolCall | NothingMore, spec: AgentSpec) -> None:
        if isinstance(decision, NothingMore):
            return
        if decision.tool not in spec.tools:
            raise PermanentError(Category.UNKNOWN_TOOL, "the model asked for a tool that this agent has not")
        checked(decision.arguments, limit_bytes=ARGUMENTS_LIMIT_BYTES)
        parsed(self._tools.get(decision.tool), decision.arguments, Category.BAD_OUTPUT)

    def _wanted(self, decision: ToolCall | NothingMore) -> WantedTool | None:
        if isinstance(decision, NothingMore):
            return None
        return WantedTool(
            tool=decision.tool,
            fingerprint=keys.fingerprint_of_call(decision.tool, decision.arguments),
            undoable=isinstance(self._tools.get(decision.tool), UndoableTool),
        )


def _plan_of(done: tuple[DoneStep, ...]) -> Plan | None:
    stored = [step.result for step in done if step.step == keys.PLAN]
    return Plan.model_validate(stored[0]) if stored else None


def arguments_asked_for(done: tuple[DoneStep, ...], step: int) -> dict[str, Any]:
    """The arguments that the model's stored reply gave for this step."""
    replies = [reply.result for reply in done if reply.step == keys.model_step(step)]
    if not replies:
        raise PermanentError(Category.NOT_FOUND, "the ledger has no reply that asked for this step")
    arguments: dict[str, Any] = replies[0]["decision"]["arguments"]
    return arguments


def _tool_results(done: tuple[DoneStep, ...]) -> tuple[ToolResult, ...]:
    results = [
        ToolResult(
            step=keys.step_number(step.step),
            tool=step.name,
            arguments=arguments_asked_for(done, keys.step_number(step.step)),
            result=step.result,
        )
        for step in done
        if step.kind is EffectKind.TOOL
    ]
    return tuple(sorted(results, key=lambda result: result.step))
