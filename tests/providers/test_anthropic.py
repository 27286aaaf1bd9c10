"""The same provider over Anthropic's wire: its errors, its tools, its stream, and one request for each call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentjobs.domain.failures import Category, JobError, MalformedReply, PermanentError, RetryableError
from agentjobs.providers.model import NothingMore, ToolCall
from agentjobs.providers.pydantic_ai_provider import PydanticAIProvider
from agentjobs.providers.real_model import real_model
from tests.providers.double_faults import Fault
from tests.providers.openai_double import OpenAIDouble
from tests.providers.scene import CANARY, PLAN, Scene, brief, until

CLAUDE = "anthropic:claude-3-5-haiku-latest"
CALLS = ("plan", "next_step", "answer")


@asynccontextmanager
async def claude(monkeypatch: pytest.MonkeyPatch, *faults: Fault, name: str = CLAUDE) -> AsyncIterator[Scene]:
    async with OpenAIDouble.running(*faults) as double:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", double.base_url.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
        provider = PydanticAIProvider(real_model(name), name)
        try:
            yield Scene(provider, double)
        finally:
            await provider.aclose()


def message(*content: dict[str, Any], stop: str = "end_turn") -> Fault:
    document = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-3-5-haiku-20241022",
        "content": list(content), "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }  # fmt: skip
    return Fault("raw", body=json.dumps(document))


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}


def stream(*pieces: str, stop: str | None = "end_turn") -> Fault:
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-3-5-haiku-20241022"}
    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    counts = {"usage": {"input_tokens": 100, "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start | empty | counts},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
    ]
    if stop:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events += [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Fault("raw", body=body, headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("status", "kind", "text", "category"),
    [
        (400, "invalid_request_error", "{prompt}", Category.INVALID_INPUT),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", Category.PAYLOAD_TOO_LARGE),
        (400, "invalid_request_error", "Your credit balance is too low", Category.ACCESS_DENIED),
        (401, "authentication_error", "{prompt}", Category.ACCESS_DENIED),
        (403, "permission_error", "{prompt}", Category.ACCESS_DENIED),
        (404, "not_found_error", "{prompt}", Category.NOT_FOUND),
        (413, "request_too_large", "{prompt}", Category.PAYLOAD_TOO_LARGE),
        (429, "rate_limit_error", "{prompt}", Category.RATE_LIMITED),
        (500, "api_error", "{prompt}", Category.UNAVAILABLE),
        (504, "timeout_error", "{prompt}", Category.TIMEOUT),
        (529, "overloaded_error", "{prompt}", Category.UNAVAILABLE),
    ],
)
async def test_an_error_answer_is_sorted_and_never_quoted(
    monkeypatch: pytest.MonkeyPatch, call: str, status: int, kind: str, text: str, category: Category
) -> None:
    fault = Fault("status", status=status, error={"type": kind, "message": text}, headers={"Retry-After": "3"})
    async with claude(monkeypatch, fault) as played:
        with pytest.raises(JobError) as raised:
            await getattr(played.provider, call)(brief(), played.heard)

        assert raised.value.category is category
        assert raised.value.nothing_happened is (status < 500 or status in (503, 529))
        assert f"{CLAUDE} answered HTTP {status}" in str(raised.value)
        assert CANARY not in str(raised.value)
        assert len(played.double.asked) == 1
        if isinstance(raised.value, RetryableError):
            assert raised.value.retry_after_seconds == 3


@pytest.mark.parametrize("call", CALLS)
async def test_a_reset_is_one_call_and_a_doubt(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    async with claude(monkeypatch, Fault("reset")) as played:
        with pytest.raises(RetryableError) as raised:
            await getattr(played.provider, call)(brief(), played.heard)

        assert not raised.value.nothing_happened
        assert len(played.double.asked) == 1


async def test_a_plan_comes_as_arguments_of_a_tool_where_there_is_no_schema_for_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with claude(monkeypatch, message(called("plan", PLAN.model_dump(mode="json")))) as played:
        reply = await played.provider.plan(brief(), played.heard)

        body = played.double.asked[0].body
        assert reply.plan == PLAN
        assert reply.usage.tokens == 120
        assert reply.usage.usd > 0
        assert body["tools"][0]["name"] == "plan"
        assert body["tool_choice"]["type"] in {"any", "tool"}


async def test_a_plan_comes_as_text_in_a_schema_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = message({"type": "text", "text": PLAN.model_dump_json()})
    async with claude(monkeypatch, fault, name="anthropic:claude-sonnet-4-6") as played:
        reply = await played.provider.plan(brief(), played.heard)

        assert reply.plan == PLAN
        assert "json_schema" in json.dumps(played.double.asked[0].body)


async def test_a_step_is_a_call_of_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    search = message(called("search_tickets", {"query": "printer"}), stop="tool_use")
    nothing = message(called("nothing_more", {}), stop="tool_use")
    async with claude(monkeypatch, search, nothing) as played:
        first = await played.provider.next_step(brief(), played.heard)
        second = await played.provider.next_step(brief(), played.heard)

        assert first.decision == ToolCall(tool="search_tickets", arguments={"query": "printer"})
        assert second.decision == NothingMore()
        assert played.double.asked[0].body["tool_choice"]["type"] == "any"


async def test_an_answer_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with claude(monkeypatch, stream("Thank ", "you.")) as played:
        reply = await played.provider.answer(brief(), played.heard)

        assert played.heard.pieces == ["Thank ", "you."]
        assert reply.answer.text == "Thank you."
        assert (reply.usage.tokens_in, reply.usage.tokens_out) == (100, 20)


async def test_a_stream_that_stops_without_its_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with claude(monkeypatch, stream("Thank ", "you.", stop=None)) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is Category.UNAVAILABLE


async def test_a_refusal_is_permanent_and_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    async with claude(monkeypatch, stream("I ", stop="refusal")) as played:
        with pytest.raises(PermanentError) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is Category.CONTENT_REFUSED
        assert raised.value.paid is not None
        assert raised.value.paid.tokens == 120


async def test_a_reply_cut_off_by_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with claude(monkeypatch, stream("Thank ", stop="max_tokens")) as played:
        with pytest.raises(MalformedReply, match="cut off"):
            await played.provider.answer(brief(), played.heard)


async def test_a_cancelled_request_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with claude(monkeypatch, Fault("hang")) as played:
        calling = asyncio.create_task(played.provider.plan(brief(), played.heard))
        await until(lambda: played.double.asked)

        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

        await until(lambda: played.double.asked[0].left_at is not None)
