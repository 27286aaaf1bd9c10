"""A provider, the double that it asks, and a listener that keeps what it hears."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from agentjobs.providers.model import Brief, Plan, ToolDescription, ToolResult
from agentjobs.providers.pydantic_ai_provider import PydanticAIProvider
from agentjobs.providers.real_model import real_model
from agentjobs.tools.tickets import Query
from agentjobs.trackers.tracker import NewTicket
from tests.providers.double_faults import Fault
from tests.providers.openai_double import OpenAIDouble

CANARY: Final = "canary-7f3a9 sk-canary0123456789 someone@example.org"
CHAT: Final = "openai-chat:double"
RESPONSES: Final = "openai-responses:double"

PLAN: Final = Plan(language="en", category="bug", urgency="high", subject="Printer", steps=("search_tickets",))
TOOLS: Final = (
    ToolDescription(
        name="search_tickets", description="Find tickets.", parameters=Query.model_json_schema()
    ),
    ToolDescription(
        name="create_ticket", description="Open one ticket.", parameters=NewTicket.model_json_schema()
    ),
)  # fmt: skip


def brief(**changes: Any) -> Brief:
    """A request with a canary in it, planned, with nothing done yet."""
    known: dict[str, Any] = {
        "instructions": "You triage requests.",
        "text": f"The printer is on fire. {CANARY}",
        "tools": TOOLS,
        "plan": PLAN,
        "remaining_seconds": 20.0,
    }
    return Brief(**known | changes)


def searched() -> ToolResult:
    """The step of a search that found nothing."""
    return ToolResult(step=1, tool="search_tickets", arguments={"query": "printer"}, result={"tickets": []})


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, for at most ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


@dataclass
class Heard:
    """A listener."""

    pieces: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    on_piece: Callable[[], Awaitable[None]] | None = None

    async def wrote(self, text: str) -> None:
        """Keep the piece."""
        self.pieces.append(text)
        if self.on_piece is not None:
            await self.on_piece()

    async def accepted(self, response_id: str) -> None:
        """Keep the id."""
        self.ids.append(response_id)


@dataclass
class Scene:
    """What a test plays with."""

    provider: PydanticAIProvider
    double: OpenAIDouble
    heard: Heard = field(default_factory=Heard)


@asynccontextmanager
async def scene(
    monkeypatch: pytest.MonkeyPatch, *faults: Fault, name: str = CHAT, repeat_last: bool = False, **options: Any
) -> AsyncIterator[Scene]:
    """A real provider that asks a double over HTTP."""
    async with OpenAIDouble.running(*faults, repeat_last=repeat_last) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        provider = PydanticAIProvider(real_model(name), name, poll_seconds=0.01, **options)
        try:
            yield Scene(provider, double)
        finally:
            await provider.aclose()
