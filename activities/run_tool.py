"""The one activity through which every tool goes, and the one through which every undo goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import activity

from activities.executor import Executor, LookUp, Reply, Work, require_settled
from activities.failures import judged
from activities.inputs import Done, EffectsToUndo, JobRef, ToolStep, UndoneOutcome, UndoStep
from activities.model_calls import arguments_asked_for
from agentjobs.agents.spec import AgentRegistry
from agentjobs.domain import keys
from agentjobs.domain.effects import EffectClass, EffectKind, EffectState, seconds_until_settled
from agentjobs.domain.failures import Category, KeyConflict, PermanentError, RetryableError
from agentjobs.domain.job import Frozen
from agentjobs.ledger.database import Connection
from agentjobs.ledger.effects import Begun, Intent
from agentjobs.ledger.ledger import Ledger
from agentjobs.ledger.records import EffectRecord
from agentjobs.tools.tool import ReconcilableTool, Tool, ToolContext, ToolRegistry, UndoableTool, parsed
from agentjobs.tracing import calls, names, spans


class Compensated(Frozen):
    """The receipt of an undo."""

    undone: str
    was_there: bool


class ToolRuns:
    """Tool calls of one worker."""

    def __init__(self, executor: Executor, ledger: Ledger, agents: AgentRegistry, tools: ToolRegistry) -> None:
        self._executor = executor
        self._ledger = ledger
        self._agents = agents
        self._tools = tools

    @activity.defn
    async def run_tool(self, step: ToolStep) -> Done:
        """Carry out one tool call, once."""
        activity_id = keys.tool_step(step.step, step.wanted.tool)
        tool, intent = self._allowed(step, activity_id)

        async def call(begun: Begun, connection: Connection | None) -> Reply:
            # Read and parsed here, so that a refusal is an attempt on record.
            given = arguments_asked_for(begun.done, step.step)
            if keys.fingerprint_of_call(tool.name, given) != intent.fingerprint:
                raise KeyConflict(recorded=keys.fingerprint_of_call(tool.name, given), given=intent.fingerprint)
            arguments = parsed(tool, given, Category.INVALID_INPUT)
            with spans.current(calls.tool_call(tool.name)):
                return Reply(await tool.call(arguments, _context(begun, connection)))

        await self._executor.carry_out(intent, Work(call, *_reconciliation(tool)), with_done=True)
        return Done(step=activity_id)

    def _allowed(self, step: ToolStep, activity_id: str) -> tuple[Tool[Any], Intent]:
        with judged():
            tool = self._tool_of(step)
            return tool, self._executor.intent(
                activity_id,
                step,
                kind=EffectKind.TOOL,
                name=tool.name,
                effect_class=tool.effect_class,
                fingerprint=step.wanted.fingerprint,
                grant=tool.grant,
                needs_approval=self._tools.approval_seconds(tool.name) is not None,
            )

    def _tool_of(self, step: ToolStep) -> Tool[Any]:
        if step.wanted.tool not in self._agents.version(step.agent, step.policy_version).tools:
            raise PermanentError(Category.UNKNOWN_TOOL, "this agent has no tool of that name")
        return self._tools.get(step.wanted.tool)

    @activity.defn
    async def find_effects(self, job: JobRef) -> EffectsToUndo:
        """What the job has done, or may have, that can be undone. No step of it begins any more."""
        with judged():
            effects = await self._ledger.effects.close_to_steps(job.job_id)
            steps = [effect.step for effect in effects if isinstance(self._tools.get(effect.tool), UndoableTool)]
            return EffectsToUndo(steps=tuple(steps))

    @activity.defn
    async def undo_tool(self, step: UndoStep) -> UndoneOutcome:
        """Compensate one effect, once; or find that it never happened, and make sure that it never will."""
        with judged():
            key = keys.step_key(step.job_id, step.undone)
            await self._ledger.effects.abandon(step.job_id, key)
            effect = await self._ledger.effects.read(key)
            tool = self._tools.get(step.tool)
            if effect is None or effect.state is EffectState.ABANDONED or not isinstance(tool, UndoableTool):
                return UndoneOutcome.NOTHING_TO_UNDO
            receipt = await self._compensate(step, effect, tool)
            return UndoneOutcome.UNDONE if receipt.was_there else UndoneOutcome.NOTHING_TO_UNDO

    async def _compensate(self, step: UndoStep, effect: EffectRecord, tool: UndoableTool[Any]) -> Compensated:
        intent = self._executor.intent(
            keys.undo_step(step.undone),
            step,
            kind=EffectKind.UNDO,
            name=tool.name,
            effect_class=_class_of_undo(tool),
            fingerprint=keys.fingerprint({"undo": step.undone}),
        )

        async def call(begun: Begun, connection: Connection | None) -> Reply:
            receipt = effect.result or await self._landed(tool, begun, effect)
            if receipt is not None:
                with spans.current(calls.tool_call(tool.name, names.Span.UNDO)):
                    await tool.undo(receipt, _context(begun, connection))
            return Reply(Compensated(undone=step.undone, was_there=receipt is not None))

        stored = await self._executor.carry_out(intent, Work(call, undone_key=effect.key))
        return Compensated.model_validate(stored)

    async def _landed(self, tool: Tool[Any], begun: Begun, effect: EffectRecord) -> dict[str, Any] | None:
        """The receipt of an effect in doubt, as its destination knows it; None: it has none, and never will."""
        if not isinstance(tool, ReconcilableTool):
            raise PermanentError(Category.OUTCOME_UNKNOWN, "the effect to undo is in doubt: a person decides")
        key = keys.destination_key(effect.key, effect.generation)
        context = ToolContext(begun.job, key, begun.remaining_seconds, connection=None)
        found = await tool.look_up(context)
        if found is not None:
            receipt = found.model_dump(mode="json")
            await self._ledger.effects.adopt(effect.key, receipt)
            return receipt
        # An undo may take as long as the call that it undoes (workflows/options.py).
        limit = activity.info().start_to_close_timeout or timedelta()
        since = effect.since_sent.total_seconds()
        require_settled(seconds_until_settled(limit.total_seconds(), tool.landing_horizon_seconds, since))
        if not await self._ledger.effects.give_up(effect.key, effect.sent_at):
            raise RetryableError(Category.UNAVAILABLE, "the effect to undo has changed since it was looked at")
        return None


def _context(begun: Begun, connection: Connection | None) -> ToolContext:
    return ToolContext(
        job=begun.job, key=begun.destination_key, remaining_seconds=begun.remaining_seconds, connection=connection
    )


def _reconciliation(tool: Tool[Any]) -> tuple[LookUp | None, float]:
    if not isinstance(tool, ReconcilableTool):
        return None, 0.0

    async def look_up(begun: Begun) -> Reply | None:
        found = await tool.look_up(_context(begun, None))
        return None if found is None else Reply(found)

    return look_up, tool.landing_horizon_seconds


def _class_of_undo(tool: UndoableTool[Any]) -> EffectClass:
    # An undo may be repeated without harm (its contract), wherever its tool's effect lives.
    transactional = tool.effect_class is EffectClass.TRANSACTIONAL
    return EffectClass.TRANSACTIONAL if transactional else EffectClass.IDEMPOTENT
