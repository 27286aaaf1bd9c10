"""Answers piece by piece: whole or not at all, and left at once when nobody wants them any more."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from agentjobs.domain.failures import Category, MalformedReply, PermanentError, RetryableError
from tests.providers.double_faults import Fault
from tests.providers.scene import CANARY, CHAT, RESPONSES, Scene, brief, scene, until

PIECES = ["Thank ", "you, ", "we look ", "into ", "it."]


def streamed(kind: Any = "reply", **changes: Any) -> Fault:
    fields = {key: changes.pop(key) for key in ("seconds", "error") if key in changes}
    pieces = changes.pop("after", 2)
    return Fault(kind, pieces=pieces, reply={"pieces": PIECES} | changes, **fields)


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_the_answer_is_told_piece_by_piece_and_returned_whole(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with scene(monkeypatch, streamed(), name=name) as played:
        reply = await played.provider.answer(brief(), played.heard)

        assert played.heard.pieces == PIECES
        assert reply.answer.text == "".join(PIECES)
        assert reply.usage.tokens == 120
        assert reply.model == "double"


async def test_the_first_piece_is_told_before_the_last_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, streamed(seconds=0.05)) as played:
        answering = asyncio.create_task(played.provider.answer(brief(), played.heard))

        await until(lambda: played.heard.pieces)

        assert not answering.done()
        assert (await answering).answer.text == "".join(PIECES)


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
@pytest.mark.parametrize("kind", ["break", "cut"])
async def test_a_stream_that_ends_in_the_middle_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    async with scene(monkeypatch, streamed(kind, after=3), name=name) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is Category.UNAVAILABLE
        assert not raised.value.nothing_happened
        assert played.heard.pieces == PIECES[: len(played.heard.pieces)] != PIECES
        assert len(played.double.asked) == 1


@pytest.mark.parametrize(
    ("code", "category"),
    [
        ("server_error", Category.UNAVAILABLE),
        ("rate_limit_exceeded", Category.RATE_LIMITED),
        ("insufficient_quota", Category.ACCESS_DENIED),
        ("never_heard_of", Category.UNAVAILABLE),
    ],
)
async def test_an_error_inside_a_stream_is_sorted_and_leaves_a_doubt(
    monkeypatch: pytest.MonkeyPatch, code: str, category: Category
) -> None:
    error = {"code": code, "type": code, "message": "while reading {prompt}"}
    async with scene(monkeypatch, streamed("error_event", error=error)) as played:
        with pytest.raises((RetryableError, PermanentError)) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is category
        assert not raised.value.nothing_happened
        assert str(raised.value).startswith(f"{CHAT} broke off its reply")
        assert CANARY not in str(raised.value)


@pytest.mark.parametrize("piece", ["a\x00b", "\ud83d", "x\udc00"])
async def test_what_cannot_be_kept_is_refused_before_anybody_is_told(
    monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    async with scene(monkeypatch, streamed(pieces=["good ", piece, " more"])) as played:
        with pytest.raises(MalformedReply) as raised:
            await played.provider.answer(brief(), played.heard)

        assert played.heard.pieces == ["good "]
        assert raised.value.paid is not None
        assert raised.value.paid.tokens_out > 0


@pytest.mark.parametrize("pieces", [["x" * 1_000_000], ["x" * 10_000] * 100])
async def test_an_endless_answer_is_left_in_the_middle(monkeypatch: pytest.MonkeyPatch, pieces: list[str]) -> None:
    async with scene(monkeypatch, streamed(pieces=pieces)) as played:
        with pytest.raises(MalformedReply, match="longer than 20000 characters") as raised:
            await played.provider.answer(brief(), played.heard)

        assert sum(map(len, played.heard.pieces)) <= 20_000
        assert raised.value.paid is not None
        assert raised.value.paid.tokens_out >= 10_000


async def test_an_answer_of_exactly_the_limit_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, streamed(pieces=["x" * 20_000])) as played:
        reply = await played.provider.answer(brief(), played.heard)

        assert len(reply.answer.text) == 20_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pieces": []}, "the reply is empty: a text is expected"),
        ({"pieces": [" ", "\n"]}, "the reply is empty: a text is expected"),
        ({"finish": "length"}, "the reply was cut off by the output limit: be shorter"),
    ],
)
@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_an_answer_that_is_empty_or_cut_off_is_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str, name: str
) -> None:
    async with scene(monkeypatch, streamed(**changes), name=name) as played:
        with pytest.raises(MalformedReply, match=message) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.paid is not None
        assert raised.value.paid.tokens == 120


@pytest.mark.parametrize("body", ["data: {nonsense\n\n", f"data: {json.dumps(CANARY)}\n\n", "hello"])
async def test_a_stream_of_garbage_is_no_answer(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    garbage = Fault("raw", body=body, headers={"Content-Type": "text/event-stream"})
    async with scene(monkeypatch, garbage) as played:
        with pytest.raises((RetryableError, MalformedReply)) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category in {Category.UNAVAILABLE, Category.BAD_OUTPUT}
        assert CANARY not in str(raised.value)


async def test_slow_pieces_run_into_the_limit_of_the_whole_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, streamed(seconds=0.2), limit_seconds=0.5) as played:
        with pytest.raises(RetryableError) as raised:
            await played.provider.answer(brief(), played.heard)

        assert raised.value.category is Category.TIMEOUT
        await until(lambda: played.double.asked[0].left_at is not None)


async def test_what_the_listener_raises_is_not_the_providers_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_database() -> None:
        raise TimeoutError("of the listener")

    async with scene(monkeypatch, streamed(seconds=0.02)) as played:
        played.heard.on_piece = no_database

        with pytest.raises(TimeoutError, match="of the listener") as raised:
            await played.provider.answer(brief(), played.heard)

        # The error is still held, and with it the call's frames: nothing is closed by being forgotten.
        await until(lambda: played.double.asked[0].left_at is not None)
        assert raised.value.args == ("of the listener",)


async def cancelled_seconds(played: Scene, call: str) -> float:
    """Seconds from the cancellation of a call to the moment at which the other side saw the connection close."""
    calling = asyncio.create_task(getattr(played.provider, call)(brief(), played.heard))
    await until(lambda: played.double.asked and (call != "answer" or played.heard.pieces))

    cancelled_at = time.monotonic()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling

    await until(lambda: played.double.asked[0].left_at is not None)
    left_at = played.double.asked[0].left_at
    assert left_at is not None
    return left_at - cancelled_at


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
@pytest.mark.parametrize("call", ["plan", "next_step"])
async def test_a_cancelled_request_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    async with scene(monkeypatch, Fault("hang"), name=name) as played:
        assert await cancelled_seconds(played, call) < 2


@pytest.mark.parametrize("name", [CHAT, RESPONSES])
async def test_a_cancelled_stream_closes_its_connection(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    endless = streamed(pieces=["word "] * 3_000, seconds=0.02)
    async with scene(monkeypatch, endless, name=name) as played:
        assert await cancelled_seconds(played, "answer") < 2
