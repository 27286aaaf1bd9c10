"""Replies that came, and are of no use: what is told of them, and what they cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentjobs.domain.failures import Category, MalformedReply, PermanentError
from agentjobs.providers.model import NothingMore, ToolCall
from tests.providers.double_faults import Fault
from tests.providers.scene import CANARY, CHAT, RESPONSES, TOOLS, brief, scene, searched

GOOD: dict[str, Any] = {
    "language": "en",
    "category": "bug",
    "urgency": "low",
    "subject": "Printer",
    "steps": ["search_tickets"],
}


def reply(**fields: Any) -> Fault:
    return Fault("reply", reply=fields)


def plan(**changes: Any) -> Fault:
    return reply(text=json.dumps(GOOD | changes))


def decision(tool: Any, arguments: Any) -> Fault:
    return reply(text=json.dumps({"decision": {"tool": tool, "arguments": arguments}}))


PLANS = [
    (reply(text="Sure! Here is your plan: " + CANARY), "the reply is no valid JSON"),
    (reply(text='{"language": "en", '), "the reply is no valid JSON"),
    (reply(text="[" * 100_000), "the reply is no valid JSON"),
    (reply(text="[1, 2]"), "the reply is JSON, but no object"),
    (reply(text=""), "the reply is empty: a JSON object is expected"),
    (reply(text=None), "the reply is empty: a JSON object is expected"),
    (plan(category=CANARY), "category: literal_error"),
    (plan(**{CANARY: 1}), "reply: an undeclared field"),
    (plan(subject="x" * 121), "subject: string_too_long"),
    (plan(subject="x" * 1_000_000), "subject: string_too_long"),
    (plan(steps=[1]), "steps.0: string_type"),
    (plan(subject="a\x00b"), "a text has a NUL character"),
    (reply(text=json.dumps({"language": "en", "steps": []})),
     "category: missing; urgency: missing; subject: missing"),
    (reply(text=json.dumps(GOOD), finish="length"), "the reply was cut off by the output limit: be shorter"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), PLANS)
async def test_a_plan_without_its_form_is_refused_by_fields_and_rules(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, message: str
) -> None:
    async with scene(monkeypatch, fault) as played:
        with pytest.raises(MalformedReply) as raised:
            await played.provider.plan(brief(), played.heard)

        assert str(raised.value) == message
        assert raised.value.paid is not None
        assert (raised.value.paid.tokens_in, raised.value.paid.tokens_out) == (100, 20)
        assert len(played.double.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"hello": CANARY},
        {"id": "x", "object": "chat.completion", "model": "m", "choices": []},
        {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"message": 5}]},
    ],
)
@pytest.mark.parametrize("call", ["plan", "next_step"])
async def test_an_envelope_of_another_shape_is_malformed_and_estimated(
    monkeypatch: pytest.MonkeyPatch, body: Any, call: str
) -> None:
    async with scene(monkeypatch, Fault("raw", body=json.dumps(body))) as played:
        with pytest.raises(MalformedReply) as raised:
            await getattr(played.provider, call)(brief(), played.heard)

        assert raised.value.paid is not None
        assert raised.value.paid.tokens_in > 50
        assert CANARY not in str(raised.value)


@pytest.mark.parametrize("half", ["\ud800", "\udfff"])
async def test_half_a_surrogate_pair_is_malformed(monkeypatch: pytest.MonkeyPatch, half: str) -> None:
    async with scene(monkeypatch, plan(subject=half), decision("search_tickets", {"query": half})) as played:
        with pytest.raises(MalformedReply):
            await played.provider.plan(brief(), played.heard)
        with pytest.raises(MalformedReply):
            await played.provider.next_step(brief(), played.heard)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (reply(text="I would search."), "the reply is no valid JSON"),
        (reply(text=""), "no tool was called: call one, or nothing_more"),
        (reply(text="{}"), "decision: an object with tool and arguments is expected"),
        (decision("search_tickets", None), "arguments: dict_type"),
        (decision("search_tickets", CANARY), "arguments: dict_type"),
        (decision("x" * 65, {}), "tool: string_too_long"),
        (decision(None, {}), "tool: string_type"),
        (decision("search_tickets", {"query": "a\x00b"}), "a text has a NUL character"),
        (decision("search_tickets", {"query": float("nan")}), "the reply is no valid JSON"),
        (reply(call=("search_tickets", '{"n": 1e999}')), "a value has no JSON form"),
        (decision("search_tickets", {"query": "x" * 1_000_000}), "a value has 1000070 bytes; 262144 is the limit"),
        (reply(call=("search_tickets", '{"query": ')), "the reply is no valid JSON"),
        (reply(call=("search_tickets", '"words"')), "the reply is JSON, but no object"),
        (reply(call=("search_tickets", "{}"), finish="length"),
         "the reply was cut off by the output limit: be shorter"),
    ],
)  # fmt: skip
async def test_a_decision_without_its_form_is_refused_by_fields_and_rules(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, message: str
) -> None:
    async with scene(monkeypatch, fault) as played:
        with pytest.raises(MalformedReply) as raised:
            await played.provider.next_step(brief(), played.heard)

        assert str(raised.value) == message
        assert raised.value.paid is not None
        assert raised.value.paid.tokens == 120


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_steps_are_decided_until_nothing_more_is_needed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    created = searched().model_copy(update={"step": 2, "tool": "create_ticket"})
    async with scene(monkeypatch, name=name) as played:
        first = await played.provider.next_step(brief(), played.heard)
        second = await played.provider.next_step(brief(done=(searched(),)), played.heard)
        third = await played.provider.next_step(brief(done=(searched(), created)), played.heard)

        assert isinstance(first.decision, ToolCall)
        assert first.decision.tool == "search_tickets"
        assert isinstance(second.decision, ToolCall)
        assert second.decision.tool == "create_ticket"
        assert third.decision == NothingMore()
        assert first.usage.tokens == 120


async def test_of_several_calls_in_one_reply_the_first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = reply(call=("search_tickets", '{"query": "again"}'), finish="tool_calls", calls=200)
    async with scene(monkeypatch, endless, repeat_last=True) as played:
        replies = [await played.provider.next_step(brief(), played.heard) for _ in range(3)]

        assert [r.decision for r in replies] == [ToolCall(tool="search_tickets", arguments={"query": "again"})] * 3
        assert len(played.double.asked) == 3


async def test_a_tool_that_was_not_offered_is_left_to_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, decision("delete_everything", {})) as played:
        reply = await played.provider.next_step(brief(), played.heard)

        assert reply.decision == ToolCall(tool="delete_everything", arguments={})


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
@pytest.mark.parametrize("call", ["plan", "next_step", "answer"])
async def test_a_refusal_is_permanent_and_paid(monkeypatch: pytest.MonkeyPatch, call: str, name: str) -> None:
    async with scene(monkeypatch, reply(refusal=f"I cannot help with {CANARY}"), name=name) as played:
        with pytest.raises(PermanentError) as raised:
            await getattr(played.provider, call)(brief(), played.heard)

        assert raised.value.category is Category.CONTENT_REFUSED
        assert raised.value.paid is not None
        assert raised.value.paid.tokens == 120
        assert not raised.value.nothing_happened
        assert CANARY not in str(raised.value)
        assert played.heard.pieces == []


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
@pytest.mark.parametrize("call", ["plan", "next_step", "answer"])
async def test_a_content_filter_is_permanent(monkeypatch: pytest.MonkeyPatch, call: str, name: str) -> None:
    async with scene(monkeypatch, reply(text="half an ", finish="content_filter"), name=name) as played:
        with pytest.raises(PermanentError) as raised:
            await getattr(played.provider, call)(brief(), played.heard)

        assert raised.value.category is Category.CONTENT_REFUSED


@pytest.mark.parametrize("call", ["plan", "next_step", "answer"])
async def test_missing_usage_is_estimated_and_never_zero(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    texts = {
        "plan": json.dumps(GOOD),
        "next_step": json.dumps({"decision": {"tool": "nothing_more", "arguments": {}}}),
        "answer": "Thank you for your request.",
    }
    async with scene(monkeypatch, reply(text=texts[call], usage=None)) as played:
        answered = await getattr(played.provider, call)(brief(), played.heard)

        sent = json.dumps(played.double.asked[0].body["messages"])
        assert answered.usage.tokens_in > len(sent) // 4
        assert answered.usage.tokens_out >= len(texts[call]) // 4


@pytest.mark.filterwarnings("ignore::pydantic_ai.exceptions.UsageExtractionFailedWarning")
async def test_usage_beyond_belief_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, reply(text=json.dumps(GOOD), usage=(-5, 10**30))) as played:
        answered = await played.provider.plan(brief(), played.heard)

        assert 0 < answered.usage.tokens < 10_000


async def test_tools_without_parameters_and_no_tools_at_all_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = TOOLS[0].model_copy(update={"name": "search_tickets", "parameters": {"type": "object"}})
    async with scene(monkeypatch) as played:
        await played.provider.next_step(brief(tools=(bare,)), played.heard)
        planned = await played.provider.plan(brief(tools=()), played.heard)

        assert planned.plan.steps == ()
