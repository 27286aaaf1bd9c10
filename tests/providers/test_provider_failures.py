"""What the provider's own troubles become: category, wait, certainty, and a message without a word of theirs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agentjobs.domain.failures import Category, JobError, PermanentError, RetryableError
from agentjobs.providers.pydantic_ai_provider import PydanticAIProvider
from agentjobs.providers.real_model import real_model
from tests.ports import free_port
from tests.providers.double_faults import Fault
from tests.providers.scene import CANARY, CHAT, RESPONSES, Heard, Scene, brief, scene

QUOTED = "this prompt is not allowed: {prompt}"
CALLS = ("plan", "next_step", "answer")


def error(code: Any = None, kind: str = "some_error") -> dict[str, Any]:
    """An error body that quotes the prompt, as servers do."""
    return {"message": QUOTED, "type": kind, "code": code, "param": None}


async def failed(played: Scene, call: str = "plan") -> JobError:
    """The failure of one call of the provider."""
    with pytest.raises(JobError) as raised:
        await getattr(played.provider, call)(brief(), played.heard)
    return raised.value


def assert_no_canary(failure: JobError) -> None:
    told = str(failure) + repr(failure.__cause__) + json.dumps(failure.args)
    assert not any(part in told for part in CANARY.split())


STATUSES: list[tuple[int, dict[str, Any], Category, str]] = [
    (400, error("invalid_value", "invalid_request_error"), Category.INVALID_INPUT, "(invalid_request_error)"),
    (400, error("context_length_exceeded", "invalid_request_error"), Category.PAYLOAD_TOO_LARGE,
     "HTTP 400 (context_length_exceeded)"),
    (400, error(400, "exceed_context_size_error"), Category.PAYLOAD_TOO_LARGE, "(exceed_context_size_error)"),
    (400, error("content_policy_violation"), Category.CONTENT_REFUSED, "(content_policy_violation)"),
    (401, error("invalid_api_key", "invalid_request_error"), Category.ACCESS_DENIED, "HTTP 401 (invalid_api_key)"),
    (403, error(), Category.ACCESS_DENIED, "HTTP 403:"),
    (404, error("model_not_found", "invalid_request_error"), Category.NOT_FOUND, "HTTP 404 (model_not_found)"),
    (404, error(None, "invalid_request_error"), Category.NOT_FOUND, "HTTP 404"),
    (408, error(), Category.TIMEOUT, "HTTP 408"),
    (409, error(), Category.UNAVAILABLE, "HTTP 409"),
    (413, error(), Category.PAYLOAD_TOO_LARGE, "HTTP 413"),
    (429, error("rate_limit_exceeded", "requests"), Category.RATE_LIMITED, "HTTP 429 (rate_limit_exceeded)"),
    (429, error("insufficient_quota", "insufficient_quota"), Category.ACCESS_DENIED, "429 (insufficient_quota)"),
    (429, error("credit_balance_exhausted", "tokens"), Category.ACCESS_DENIED, "(insufficient_quota)"),
    (500, error("server_error", "server_error"), Category.UNAVAILABLE, "HTTP 500 (server_error)"),
    (500, error(), Category.UNAVAILABLE, "HTTP 500"),
    (503, error(503, "unavailable_error"), Category.UNAVAILABLE, "HTTP 503 (unavailable_error)"),
    (504, error(), Category.TIMEOUT, "HTTP 504"),
    (529, error("overloaded_error", "overloaded_error"), Category.UNAVAILABLE, "HTTP 529 (overloaded_error)"),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("status", "body", "category", "message"), STATUSES)
async def test_an_error_answer_is_sorted_and_never_quoted(
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    status: int,
    body: dict[str, Any],
    category: Category,
    message: str,
) -> None:
    async with scene(monkeypatch, Fault("status", status=status, error=body)) as played:
        failure = await failed(played, call)

        assert failure.category is category
        assert message in str(failure)
        assert str(failure).startswith(f"{CHAT} answered")
        assert failure.nothing_happened is (status < 500 or status in (503, 529))
        assert failure.paid is None
        assert_no_canary(failure)
        assert len(played.double.asked) == 1


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": in_seconds(3_600), "Date": in_seconds(0)}, 3_598, 3_602),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.5),
        ({"Retry-After": "-5"}, 0, 0),
        ({"Retry-After": "999999"}, 999_999, 999_999),
    ],
)
async def test_what_the_provider_asks_to_wait_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, status: int, headers: dict[str, str], least: float, most: float
) -> None:
    async with scene(monkeypatch, Fault("status", status=status, headers=headers)) as played:
        failure = await failed(played)

        assert isinstance(failure, RetryableError)
        assert failure.retry_after_seconds is not None
        assert least <= failure.retry_after_seconds <= most


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "soon"}, {"retry-after-ms": "x", "Retry-After": "nan"}])
async def test_a_wait_that_cannot_be_read_is_none(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    async with scene(monkeypatch, Fault("status", status=429, headers=headers)) as played:
        failure = await failed(played)

        assert isinstance(failure, RetryableError)
        assert failure.retry_after_seconds is None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_a_reset_before_the_answer_leaves_a_doubt(
    monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    async with scene(monkeypatch, Fault("reset"), name=name) as played:
        failure = await failed(played, call)

        assert failure.category is Category.UNAVAILABLE
        assert str(failure) == f"the exchange with {name} broke off"
        assert not failure.nothing_happened
        assert len(played.double.asked) == 1


async def test_a_refused_connection_had_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port()}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    provider = PydanticAIProvider(real_model(CHAT), CHAT)

    with pytest.raises(RetryableError) as raised:
        await provider.plan(brief(), Heard())
    await provider.aclose()

    assert raised.value.category is Category.UNAVAILABLE
    assert raised.value.nothing_happened
    assert str(raised.value) == f"{CHAT} could not be reached"


@pytest.mark.parametrize("call", CALLS)
async def test_a_provider_that_never_answers_runs_into_the_limit(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    async with scene(monkeypatch, Fault("hang"), limit_seconds=0.3) as played:
        failure = await failed(played, call)

        assert failure.category is Category.TIMEOUT
        assert not failure.nothing_happened
        assert len(played.double.asked) == 1


async def test_a_call_takes_no_longer_than_the_job_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, Fault("hang")) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.plan(brief(remaining_seconds=0.3), played.heard)

        assert raised.value.category is Category.TIMEOUT
        assert played.double.asked[0].headers["x-stainless-read-timeout"] == "0.3"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [CHAT, RESPONSES])
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/html"}])
@pytest.mark.parametrize("body", ['{"id": "x", "choi', f"<html>{CANARY}</html>", ""])
async def test_an_answer_that_is_no_json_is_tried_again_and_estimated(
    monkeypatch: pytest.MonkeyPatch, body: str, headers: dict[str, str], name: str, call: str
) -> None:
    async with scene(monkeypatch, Fault("raw", body=body, headers=headers), name=name) as played:
        failure = await failed(played, call)

        assert failure.category is Category.UNAVAILABLE
        assert "can be read" in str(failure)
        assert failure.paid is not None
        assert failure.paid.tokens_in > 50
        assert_no_canary(failure)


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    elsewhere = Fault("raw", status=307, headers={"Location": "/v1/elsewhere"}, body="{}")
    async with scene(monkeypatch, elsewhere, name=name) as played:
        failure = await failed(played)

        assert isinstance(failure, PermanentError)
        assert "HTTP 307" in str(failure)
        assert len(played.double.asked) == 1


async def test_one_http_client_serves_calls_at_the_same_time_and_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as played:
        client = played.provider._model.client  # type: ignore[attr-defined]
        await played.provider.plan(brief(), played.heard)
        await played.provider.next_step(brief(), played.heard)

        await played.provider.aclose()

        assert client.is_closed()
        assert len(played.double.asked) == 2
