"""The three model calls of a job: plan, next step, answer. Replies are effects: stored before the activity
returns, so that a crash in between is not paid twice.
"""

from __future__ import annotations

from typing import Any

from temporalio import activity

from activities.asking import Access, Asking, Question
from activities.executor import Executor, Reply, Work
from activities.failures import judged
from activities.inputs import Decided, Done, JobRef, ModelStep, PlanMade
from agentjobs.agents.spec import AgentRegistry, AgentSpec
from agentjobs.domain import keys
from agentjobs.domain.budget import Usage
from agentjobs.domain.decisions import WantedTool
from agentjobs.domain.effects import EffectClass, EffectKind
from agentjobs.domain.failures import Category, MalformedReply, PermanentError
from agentjobs.domain.job import Frozen
from agentjobs.domain.values import checked
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun, DoneStep, Intent
from agentjobs.providers.model import (
    Brief,
    Listener,
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


class ModelCalls:
    """Model calls of one worker."""

    def __init__(self, executor: Executor, access: Access, agents: AgentRegistry, tools: ToolRegistry) -> None:
        self._executor = executor
        self._access = access
        self._agents = agents
        self._tools = tools
        self._descriptions: dict[str, ToolDescription] = {}

    @activity.defn
    async def plan(self, job: JobRef) -> PlanMade:
        """Ask what the request is."""

        async def question(provider: ModelProvider, brief: Brief, listener: Listener) -> Reply:
            reply = await provider.plan(brief, listener)
            return Reply(reply.plan, reply.usage, reply.model)

        plan = Plan.model_validate(await self._asked(keys.PLAN, job, question))
        return PlanMade(language=plan.language, category=plan.category, urgency=plan.urgency)

    @activity.defn
    async def call_model(self, step: ModelStep) -> Decided:
        """Ask for the next step."""
        spec = self._spec(step)

        async def question(provider: ModelProvider, brief: Brief, listener: Listener) -> Reply:
            reply = await provider.next_step(brief, listener)
            # Before it is stored: a reply that cannot be carried out must not be kept and met again.
            self._check(reply.decision, spec, reply.usage)
            return Reply(StoredDecision(decision=reply.decision), reply.usage, reply.model)

        receipt = await self._asked(keys.model_step(step.step), step, question)
        return Decided(wanted=self._wanted(StoredDecision.model_validate(receipt).decision))

    @activity.defn
    async def write_answer(self, job: JobRef) -> Done:
        """Ask for the answer to the person who asked."""

        async def question(provider: ModelProvider, brief: Brief, listener: Listener) -> Reply:
            reply = await provider.answer(brief, listener)
            return Reply(reply.answer, reply.usage, reply.model)

        await self._asked(keys.ANSWER, job, question)
        return Done(step=keys.ANSWER)

    def is_short(self, job: JobRef) -> bool:
        """Whether what is asked for this job is answered at once, by rules."""
        return self._access.is_short(self._spec(job))

    async def _asked(self, step: str, job: JobRef, question: Question) -> dict[str, Any]:
        spec = self._spec(job)
        intent = self._intent(step, job, spec)
        asking = Asking(self._access, spec, intent, question)

        async def call(begun: Begun, _: Connection | None) -> Reply:
            return await asking.call(begun, self._brief(spec, begun))

        work = Work(call, elsewhere=asking.elsewhere)
        return await self._executor.carry_out(intent, work, with_done=step != keys.PLAN)

    def _spec(self, job: JobRef) -> AgentSpec:
        with judged():
            return self._agents.version(job.agent, job.policy_version)

    def _intent(self, step: str, job: JobRef, spec: AgentSpec) -> Intent:
        return self._executor.intent(
            step,
            job,
            kind=EffectKind.MODEL,
            name="model",
            effect_class=EffectClass.READ_ONLY,
            # What a model is told follows from the job and from earlier receipts, which never change; the
            # policy version may (a redrive chooses one), and must not make a paid reply a conflict.
            fingerprint=keys.fingerprint({"agent": job.agent, "step": step}),
            reserve=self._access.reservation(spec),
        )

    def _brief(self, spec: AgentSpec, begun: Begun) -> Brief:
        return Brief(
            instructions=spec.instructions,
            text=begun.job.text,
            tools=tuple(self._description(name) for name in _offered(spec, begun)),
            plan=_plan_of(begun.done),
            done=_tool_results(begun.done),
            max_output_tokens=spec.max_output_tokens,
            remaining_seconds=begun.remaining_seconds,
        )

    def _description(self, name: str) -> ToolDescription:
        if name not in self._descriptions:  # a schema takes milliseconds to make
            tool = self._tools.get(name)
            parameters = tool.arguments.model_json_schema()
            self._descriptions[name] = ToolDescription(
                name=name, description=tool.description, parameters=parameters
            )
        return self._descriptions[name]

    def _check(self, decision: ToolCall | NothingMore, spec: AgentSpec, paid: Usage) -> None:
        if isinstance(decision, NothingMore):
            return
        if decision.tool not in spec.tools:
            message = "the model asked for a tool that this agent has not"
            raise PermanentError(Category.UNKNOWN_TOOL, message, paid=paid)
        try:
            checked(decision.arguments, limit_bytes=ARGUMENTS_LIMIT_BYTES)
            parsed(self._tools.get(decision.tool), decision.arguments, Category.BAD_OUTPUT)
        except PermanentError as error:
            if error.category is not Category.BAD_OUTPUT:
                raise
            raise MalformedReply(str(error), paid=paid) from None

    def _wanted(self, decision: ToolCall | NothingMore) -> WantedTool | None:
        if isinstance(decision, NothingMore):
            return None
        return WantedTool(
            tool=decision.tool,
            fingerprint=keys.fingerprint_of_call(decision.tool, decision.arguments),
            undoable=isinstance(self._tools.get(decision.tool), UndoableTool),
            approval_seconds=self._tools.approval_seconds(decision.tool),
            short=self._tools.get(decision.tool).short,
        )


def _offered(spec: AgentSpec, begun: Begun) -> list[str]:
    called = {step.name for step in begun.done if step.kind is EffectKind.TOOL}
    return [name for name in spec.tools if name not in spec.once or name not in called]


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
