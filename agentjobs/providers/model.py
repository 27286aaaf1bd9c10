"""The seam between the activities and whoever answers a model call.

A provider is asked for one of three things: a plan of the request, the next step (one tool call, or the word
that nothing more is needed), or the answer to the person who asked. It raises the errors of
`agentjobs.domain.failures` (a reply without its declared form is a MalformedReply, which the next attempt is told
of), retries nothing by itself (Temporal is the only retry layer), and reports what the call cost. When it is
cancelled it lets go of its connection at once, so that the other side stops writing.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from agentjobs.domain.budget import Usage
from agentjobs.domain.job import Frozen

Category = Literal["account", "billing", "bug", "incident", "question", "complaint", "other"]
Urgency = Literal["low", "normal", "high"]


class Plan(Frozen):
    """What the request is, in the words of the triage. `language` is a BCP 47 tag such as `pt-BR` or `und`."""

    language: Annotated[str, Field(max_length=35)]
    category: Category
    urgency: Urgency
    subject: Annotated[str, Field(min_length=1, max_length=120)]
    steps: Annotated[tuple[str, ...], Field(max_length=20)]
    """Names of the tools that are likely to be called, in order; the model may decide otherwise on the way."""


class ToolCall(Frozen):
    """The model asks for one tool; the executor validates the arguments and decides whether it may."""

    kind: Literal["tool"] = "tool"
    tool: Annotated[str, Field(max_length=64)]
    arguments: dict[str, Any]


class NothingMore(Frozen):
    """The model needs no further tool: the answer comes next."""

    kind: Literal["nothing_more"] = "nothing_more"


class Answer(Frozen):
    """The text for the person who asked, in the language of the request."""

    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class ToolResult(Frozen):
    """A tool call of an earlier step with what it returned."""

    step: int
    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any]


class ToolDescription(Frozen):
    """A tool as the model sees it: `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class Brief(Frozen):
    """Everything a provider gets to know for one call."""

    instructions: str
    text: str
    tools: tuple[ToolDescription, ...]
    plan: Plan | None = None
    done: tuple[ToolResult, ...] = ()
    correction: str | None = None
    """What was wrong with the reply to the attempt before: names of fields and rules, no content."""

    response_id: str | None = None
    """Under which an earlier attempt's answer is being written at the provider: fetch it, ask for no new one."""

    max_output_tokens: int = 4_096
    remaining_seconds: float


class PlanReply(Frozen):
    """A plan with what it cost."""

    plan: Plan
    model: str
    usage: Usage


class StepReply(Frozen):
    """The next step with what it cost."""

    decision: Annotated[ToolCall | NothingMore, Field(discriminator="kind")]
    model: str
    usage: Usage


class AnswerReply(Frozen):
    """The answer with what it cost."""

    answer: Answer
    model: str
    usage: Usage


class Listener(Protocol):
    """Who is told while a call is under way. Awaiting it is what slows a provider down that writes too fast."""

    async def wrote(self, text: str) -> None:
        """A piece of the answer, as it came: shown to the owner as part of this attempt."""

    async def accepted(self, response_id: str) -> None:
        """The provider writes in the background, under this id: durable when this returns, so wait only then."""


class ModelProvider(Protocol):
    """Answers model calls. One instance serves a worker; it is closed at the end."""

    @property
    def metered(self) -> bool:
        """Whether calls are limited or paid for somewhere: then they are admitted, and their outcome is shared."""

    @property
    def short(self) -> bool:
        """Whether an answer takes milliseconds, and waits for nobody: it is asked for in the fast lane."""

    def most_usd(self, tokens: int) -> Decimal:
        """The most that a call of this many tokens, in and out, can cost. Zero where no price is known."""

    async def plan(self, brief: Brief, listener: Listener) -> PlanReply:
        """Read the request and say what it is."""

    async def next_step(self, brief: Brief, listener: Listener) -> StepReply:
        """Choose the next tool call from `brief.plan` and `brief.done`, or say that nothing more is needed."""

    async def answer(self, brief: Brief, listener: Listener) -> AnswerReply:
        """Write the answer from `brief.plan` and `brief.done`."""

    async def aclose(self) -> None:
        """Give back connections."""
