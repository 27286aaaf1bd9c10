"""Hand-written fakes: a provider that does what a test scripts, and tools that count what they do."""

import asyncio
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from agentjobs.domain.budget import Usage
from agentjobs.domain.effects import EffectClass
from agentjobs.domain.job import Frozen
from agentjobs.providers.model import (
    Answer,
    AnswerReply,
    Brief,
    Listener,
    NothingMore,
    Plan,
    PlanReply,
    StepReply,
    ToolCall,
)
from agentjobs.tools.tool import Tool, ToolContext

USAGE = Usage(tokens_in=10, tokens_out=5)
TICKET = {"subject": "Printer on fire", "body": "It burns.", "category": "incident"}


def create_ticket(**changes: object) -> ToolCall:
    """A model's wish for one ticket."""
    return ToolCall(tool="create_ticket", arguments={**TICKET, **changes})


class ScriptedProvider:
    """Plays `steps` in order (one ticket, unless told otherwise), and raises what is in `errors` first."""

    def __init__(
        self,
        steps: tuple[ToolCall, ...] | None = None,
        errors: tuple[Exception, ...] = (),
        *,
        metered: bool = False,
        short: bool = False,
        usd_a_token: str = "0",
    ) -> None:
        self._metered = metered
        self._short = short
        self._usd_a_token = Decimal(usd_a_token)
        self.briefs: list[Brief] = []
        self._steps = (create_ticket(),) if steps is None else steps
        self._errors = deque(errors)
        self._fails: dict[str, Exception] = {}
        self._holds: set[str] = set()
        self._gate = asyncio.Event()
        self._reached: dict[str, asyncio.Event] = {}
        self.calls: list[str] = []

    def fail_at(self, purpose: str, error: Exception | None) -> None:
        """From now on, calls of this purpose fail (or, with None, no longer do)."""
        self._fails.pop(purpose, None)
        if error is not None:
            self._fails[purpose] = error

    def hold_at(self, purpose: str) -> None:
        """From now on, calls of this purpose wait until they are released or cancelled."""
        self._holds.add(purpose)

    def release(self) -> None:
        """Let held calls go on."""
        self._gate.set()

    async def reached(self, purpose: str) -> None:
        """Until a call of this purpose has been made."""
        async with asyncio.timeout(30):
            await self._reached.setdefault(purpose, asyncio.Event()).wait()

    @property
    def metered(self) -> bool:
        """As the test wants it."""
        return self._metered

    @property
    def short(self) -> bool:
        """As the test wants it."""
        return self._short

    def most_usd(self, tokens: int) -> Decimal:
        """At the price of this test."""
        return tokens * self._usd_a_token

    async def plan(self, brief: Brief, listener: Listener | None = None) -> PlanReply:
        """A fixed plan."""
        self.briefs.append(brief)
        await self._called("plan")
        plan = Plan(language="en", category="incident", urgency="high", subject="Printer", steps=())
        return PlanReply(plan=plan, model="scripted", usage=USAGE)

    async def next_step(self, brief: Brief, listener: Listener | None = None) -> StepReply:
        """The next scripted step, by how many are done."""
        self.briefs.append(brief)
        await self._called("step")
        done = len(brief.done)
        decision = self._steps[done] if done < len(self._steps) else NothingMore()
        return StepReply(decision=decision, model="scripted", usage=USAGE)

    async def answer(self, brief: Brief, listener: Listener | None = None) -> AnswerReply:
        """A fixed answer."""
        self.briefs.append(brief)
        await self._called("answer")
        return AnswerReply(answer=Answer(text="Thank you."), model="scripted", usage=USAGE)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _called(self, purpose: str) -> None:
        self.calls.append(purpose)
        self._reached.setdefault(purpose, asyncio.Event()).set()
        if purpose in self._holds:
            await self._gate.wait()
        if purpose in self._fails:
            raise self._fails[purpose]
        if self._errors:
            raise self._errors.popleft()


class NoArguments(Frozen):
    """A tool call without arguments."""


class Counted(Frozen):
    """How often the tool was called."""

    calls: int


class CountingTool(Tool[NoArguments]):
    """Counts its calls; `before` runs first and may raise or wait."""

    name = "search_tickets"
    description = "Counts."
    arguments = NoArguments

    def __init__(self, effect_class: EffectClass, before: Callable[[int], Any] | None = None) -> None:
        self._class = effect_class
        self._before = before
        self.calls = 0

    @property
    def effect_class(self) -> EffectClass:
        """As the test wants it."""
        return self._class

    async def call(self, arguments: NoArguments, context: ToolContext) -> BaseModel:
        """Count, then do what the test wants."""
        self.calls += 1
        if self._before is not None:
            answer = self._before(self.calls)
            if asyncio.iscoroutine(answer):
                await answer
        return Counted(calls=self.calls)
