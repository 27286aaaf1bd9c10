"""Answers that a provider writes in the background: OpenAI's Responses API, `background`.

The response is stored there and goes on while no worker is connected. Its id is durable before anybody waits for
it, so that after a crash it is fetched, and not paid for again.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError, SuspendedResponseExpired
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from agentjobs.domain.failures import Category, RetryableError
from agentjobs.providers.exchange import Exchange, is_kind
from agentjobs.providers.model import Listener
from agentjobs.providers.provider_failures import translated

_IN_BACKGROUND: Final = cast(ModelSettings, {"openai_background": True})
_GONE: Final = frozenset({404, 410})


def writes_in_background(model: Model) -> bool:
    """Whether the model has stored responses that can be waited for."""
    return is_kind(model, "OpenAIResponsesModel")


async def written_in_background(
    exchange: Exchange, listener: Listener, response_id: str | None, *, poll_seconds: float
) -> ModelResponse:
    """The whole response. Raises RetryableError, MalformedReply or PermanentError.

    response_id: of an earlier attempt's response, which is waited for. If the provider has it no more (OpenAI
    keeps one for about ten minutes) or failed to write it, a new one is asked for. A cancellation stops only the
    waiting.
    """
    response = await _stored(exchange, response_id) if response_id else None
    if response is None:
        response = await exchange.reply(settings=_IN_BACKGROUND)
        await listener.accepted(_id_of(response, exchange.name))
    while response.state == "suspended":
        await asyncio.sleep(poll_seconds)
        response = await exchange.reply(after=[response], settings=_IN_BACKGROUND)
    return response


async def _stored(exchange: Exchange, response_id: str) -> ModelResponse | None:
    with translated(exchange.name, exchange.estimate()):
        try:
            return await exchange.sent(after=[_waiting(exchange.model, response_id)], settings=_IN_BACKGROUND)
        except SuspendedResponseExpired:
            return None
        except ModelAPIError as error:
            if _will_never_be(error):
                return None
            raise


def _waiting(model: Model, response_id: str) -> ModelResponse:
    """What pydantic-ai takes for the sign of a response to be fetched."""
    return ModelResponse(
        parts=[],
        model_name=model.model_name,
        provider_name=model.system,
        provider_response_id=response_id,
        provider_details={"background": True},
        state="suspended",
    )


def _will_never_be(error: ModelAPIError) -> bool:
    if isinstance(error, ModelHTTPError):
        return error.status_code in _GONE
    # Without a status and without a broken connection: the stored response says of itself that it failed.
    return not isinstance(error, ModelConnectionError) and error.provider_error_code is not None


def _id_of(response: ModelResponse, name: str) -> str:
    if not response.provider_response_id:
        raise RetryableError(Category.UNAVAILABLE, f"{name} gave its background response no id")
    return response.provider_response_id
