"""Real models, through pydantic-ai's direct interface: one request, one reply, and nothing repeated here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from typing import Final

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.providers.background import writes_in_background, written_in_background
from agentjobs.providers.exchange import Exchange
from agentjobs.providers.model import AnswerReply, Brief, Listener, PlanReply, StepReply
from agentjobs.providers.model_requests import Asking, for_answer, for_plan, for_step
from agentjobs.providers.prices import Prices
from agentjobs.providers.replies import (
    ANSWER_LIMIT_CHARACTERS,
    answer_of,
    decision_of,
    is_storable_text,
    plan_of,
    require_whole,
    text_of,
    written_in,
)

CALL_LIMIT_SECONDS: Final = 170.0
"""For one call. Below the 180 s that its activity has, so that a call too slow is on record as just that."""

POLL_SECONDS: Final = 2.0
"""Between two looks at a background response; what pydantic-ai's own loop takes."""

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}")


class PydanticAIProvider:
    """Answers model calls with one model of pydantic-ai, over one HTTP client.

    With `background`, an answer is a stored response of OpenAI's Responses API, which outlives the worker. Usage
    that a server leaves out is estimated, rather too high than too low: see `Prices.paid`.
    """

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        background: bool = False,
        poll_seconds: float = POLL_SECONDS,
        limit_seconds: float = CALL_LIMIT_SECONDS,
    ) -> None:
        """name: as in AGENTJOBS_MODEL. Raises ValueError for `background` where the model has no such thing."""
        if background and not writes_in_background(model):
            raise ValueError(f"{name} has no background responses: models named openai-responses:... have")
        self._model = model
        self._name = name
        self._background = background
        self._poll_seconds = poll_seconds
        self._limit_seconds = limit_seconds
        self._prices = Prices(model.system, model.model_name)

    @property
    def metered(self) -> bool:
        """Real models have limits and prices."""
        return True

    @property
    def short(self) -> bool:
        """A model takes seconds, and may take minutes."""
        return False

    def most_usd(self, tokens: int) -> Decimal:
        """Tokens at the dearer of the price in and the price out; 0 where the price is not known."""
        return self._prices.most_usd(tokens)

    async def plan(self, brief: Brief, listener: Listener) -> PlanReply:  # noqa: ARG002
        """Sort the request. Raises RetryableError, MalformedReply or PermanentError."""
        response, paid = await self._asked(for_plan(brief, self._model, self._seconds(brief)), brief)
        return PlanReply(plan=plan_of(response, paid), model=self._answered_by(response), usage=paid)

    async def next_step(self, brief: Brief, listener: Listener) -> StepReply:  # noqa: ARG002
        """Choose a tool, by calling it. Raises RetryableError, MalformedReply or PermanentError."""
        response, paid = await self._asked(for_step(brief, self._model, self._seconds(brief)), brief)
        return StepReply(decision=decision_of(response, paid), model=self._answered_by(response), usage=paid)

    async def answer(self, brief: Brief, listener: Listener) -> AnswerReply:
        """Write the answer, piece by piece to the listener; in the background it comes as one piece.

        Raises RetryableError, MalformedReply or PermanentError.
        """
        exchange = self._exchange(for_answer(brief, self._seconds(brief)))
        # With a correction, the stored response is the very reply that was refused.
        stored = None if brief.correction else brief.response_id
        async with self._in_time(brief):
            if self._background or (stored and writes_in_background(self._model)):
                response = await written_in_background(exchange, listener, stored, poll_seconds=self._poll_seconds)
                reply = self._answer(exchange, response, text_of(response))
                await listener.wrote(reply.answer.text)
                return reply
            response, text = await _streamed(exchange, listener)
        return self._answer(exchange, response, text)

    async def aclose(self) -> None:
        """Close the HTTP client. A model does so at the end of a block of its own: this is one."""
        async with self._model:
            pass

    async def _asked(self, asking: Asking, brief: Brief) -> tuple[ModelResponse, Usage]:
        exchange = self._exchange(asking)
        async with self._in_time(brief):
            response = await exchange.reply()
        paid = exchange.paid(response, written_in(response))
        require_whole(response, self._name, paid)
        return response, paid

    def _answer(self, exchange: Exchange, response: ModelResponse, text: str) -> AnswerReply:
        paid = exchange.paid(response, text)
        require_whole(response, self._name, paid)
        return AnswerReply(answer=answer_of(text, paid), model=self._answered_by(response), usage=paid)

    def _exchange(self, asking: Asking) -> Exchange:
        return Exchange(self._model, self._name, self._prices, asking)

    def _seconds(self, brief: Brief) -> float:
        return min(brief.remaining_seconds, self._limit_seconds)

    @asynccontextmanager
    async def _in_time(self, brief: Brief) -> AsyncIterator[None]:
        # Over the whole call: the client's own limits count only the silence between two pieces.
        limit = asyncio.timeout(self._seconds(brief))
        try:
            async with limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise RetryableError(Category.TIMEOUT, f"{self._name} did not answer in time") from None
            raise

    def _answered_by(self, response: ModelResponse) -> str:
        # The exact version, as the provider calls it: but only a name is let through.
        named = response.model_name or ""
        return named if _MODEL_NAME.fullmatch(named) else self._name


async def _streamed(exchange: Exchange, listener: Listener) -> tuple[ModelResponse, str]:
    written: list[str] = []
    length = 0
    async with aclosing(exchange.pieces()) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelResponse):
                return piece, "".join(written)
            length += len(piece)
            written.append(piece)
            if length > ANSWER_LIMIT_CHARACTERS or not is_storable_text(piece):
                # Refused at once: nothing of the kind may be shown, and an endless answer costs without end.
                text = "".join(written)
                answer_of(text, exchange.estimate(text))
            await listener.wrote(piece)
    raise RuntimeError("a stream of pieces ended without its reply")
