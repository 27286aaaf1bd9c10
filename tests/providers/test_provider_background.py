"""Answers written in the background: asked for once, fetched after a crash, asked for again when they are gone."""

from __future__ import annotations

import asyncio
import json

import pytest

from agentjobs.domain.failures import Category, PermanentError, RetryableError
from agentjobs.providers.pydantic_ai_provider import PydanticAIProvider
from agentjobs.providers.real_model import real_model
from tests.providers.double_faults import Fault
from tests.providers.scene import CANARY, CHAT, RESPONSES, Scene, brief, scene, until

FAILED = {"code": "server_error", "message": CANARY}


def asked(played: Scene) -> list[str]:
    return [f"{request.method} {request.path}" for request in played.double.asked]


async def test_a_background_answer_is_accepted_then_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, Fault(looks=3), name=RESPONSES, background=True) as played:
        reply = await played.provider.answer(brief(), played.heard)

        assert asked(played) == ["POST /v1/responses", *["GET /v1/responses/resp_1"] * 3]
        assert played.double.asked[0].body["background"] is True
        assert played.heard.ids == ["resp_1"]
        assert played.heard.pieces == [reply.answer.text]
        assert reply.usage.tokens == 120


async def test_the_id_is_durable_before_anybody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, name=RESPONSES, background=True) as played:
        seen: list[list[str]] = []

        async def accepted(response_id: str) -> None:
            seen.append(asked(played))

        monkeypatch.setattr(played.heard, "accepted", accepted)
        await played.provider.answer(brief(), played.heard)

        assert seen == [["POST /v1/responses"]]


async def test_after_a_crash_the_stored_response_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, Fault(looks=1_000), name=RESPONSES, background=True) as played:
        crashed = asyncio.create_task(played.provider.answer(brief(), played.heard))
        await until(lambda: len(played.double.asked) >= 3)
        crashed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crashed
        played.double.stored["resp_1"]["looks"] = 1
        played.double.asked.clear()

        reply = await played.provider.answer(brief(response_id="resp_1"), played.heard)

        assert asked(played) == ["GET /v1/responses/resp_1"]
        assert played.heard.ids == ["resp_1"]
        assert reply.answer.text.startswith("Thank you.")


async def test_a_response_id_is_followed_even_when_background_is_off_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch, name=RESPONSES, background=True) as played:
        await played.provider.answer(brief(), played.heard)
        played.double.asked.clear()
        later = PydanticAIProvider(real_model(RESPONSES), RESPONSES, poll_seconds=0.01)

        await later.answer(brief(response_id="resp_1"), played.heard)
        await later.aclose()

        assert asked(played) == ["GET /v1/responses/resp_1"]


async def test_a_response_that_is_gone_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, name=RESPONSES, background=True) as played:
        reply = await played.provider.answer(brief(response_id="resp_gone"), played.heard)

        assert asked(played)[:2] == ["GET /v1/responses/resp_gone", "POST /v1/responses"]
        assert len(played.heard.ids) == 1
        assert reply.answer.text


async def test_a_response_that_failed_there_is_a_failure_then_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch, Fault("failed", error=FAILED), name=RESPONSES, background=True) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(), played.heard)
        played.double.asked.clear()

        reply = await played.provider.answer(brief(response_id=played.heard.ids[0]), played.heard)

        assert raised.value.category is Category.UNAVAILABLE
        assert CANARY not in str(raised.value)
        assert asked(played)[:2] == ["GET /v1/responses/resp_1", "POST /v1/responses"]
        assert reply.answer.text


async def test_a_stored_response_that_was_refused_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, name=RESPONSES, background=True) as played:
        await played.provider.answer(brief(response_id="resp_1", correction="too long"), played.heard)

        assert asked(played)[0] == "POST /v1/responses"
        assert "too long" in played.double.asked[0].body["instructions"]


@pytest.mark.parametrize(
    ("fault", "category"),
    [
        (Fault("status", status=503), Category.UNAVAILABLE),
        (Fault("status", status=429), Category.RATE_LIMITED),
        (Fault("reset"), Category.UNAVAILABLE),
    ],
)
async def test_trouble_while_fetching_asks_for_nothing_anew(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, category: Category
) -> None:
    async with scene(monkeypatch, fault, name=RESPONSES, background=True) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(response_id="resp_1"), played.heard)

        assert raised.value.category is category
        assert asked(played) == ["GET /v1/responses/resp_1"]


async def test_a_key_that_is_refused_while_fetching_is_permanent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, Fault("status", status=401), name=RESPONSES, background=True) as played:
        with pytest.raises(PermanentError) as raised:
            await played.provider.answer(brief(response_id="resp_1"), played.heard)

        assert raised.value.category is Category.ACCESS_DENIED


async def test_waiting_ends_at_the_limit_and_the_next_attempt_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    never = Fault(looks=10**9)
    async with scene(monkeypatch, never, name=RESPONSES, background=True, limit_seconds=0.5) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is Category.TIMEOUT
        assert played.heard.ids == ["resp_1"]


async def test_a_server_that_ignores_background_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done = {"id": "resp_9", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                        "content": [{"type": "output_text", "text": "At once.", "annotations": []}]}],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}  # fmt: skip
    async with scene(monkeypatch, Fault("raw", body=json.dumps(done)), name=RESPONSES, background=True) as played:
        reply = await played.provider.answer(brief(), played.heard)

        assert reply.answer.text == "At once."
        assert asked(played) == ["POST /v1/responses"]


def test_a_model_without_background_responses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")

    with pytest.raises(ValueError, match="no background responses"):
        PydanticAIProvider(real_model(CHAT), CHAT, background=True)
