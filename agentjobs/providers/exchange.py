"""One request to a model and its reply, whole or in pieces; every failure translated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from agentjobs.domain.budget import Usage
from agentjobs.domain.failures import Category, RetryableError
from agentjobs.providers.model_requests import Asking
from agentjobs.providers.prices import Prices
from agentjobs.providers.provider_failures import translated
from agentjobs.tracing.contexts import passed_on


def is_kind(model: Model, class_name: str) -> bool:
    """Whether the model is of a class of pydantic-ai's, by name: its module may lack the SDK that it imports."""
    return any(kind.__name__ == class_name for kind in type(model).__mro__)


@dataclass(frozen=True)
class Exchange:
    """A request ready to be sent to a model. name: as in AGENTJOBS_MODEL, for messages."""

    model: Model
    name: str
    prices: Prices
    asking: Asking

    async def reply(
        self, *, after: Sequence[ModelMessage] = (), settings: ModelSettings | None = None
    ) -> ModelResponse:
        """The reply as a whole. Raises RetryableError, MalformedReply or PermanentError.

        after: messages behind those of the request, such as a response that is still being written.
        """
        with translated(self.name, self.estimate()):
            return await self.sent(after=after, settings=settings)

    async def sent(
        self, *, after: Sequence[ModelMessage] = (), settings: ModelSettings | None = None
    ) -> ModelResponse:
        """As `reply`, but raises what pydantic-ai raises."""
        return await model_request(
            self.model,
            [*self.asking.messages, *after],
            model_settings={**self.asking.settings, **(settings or {}), **_in_trace()},
            model_request_parameters=self.asking.parameters,
            instrument=False,  # a span would carry the prompt
        )

    async def pieces(self) -> AsyncGenerator[str | ModelResponse]:
        """The pieces of text as they come, and the whole reply as the last item. Raises as `reply` does.

        A generator, so that what its consumer raises between two pieces is not taken for the provider's failure.
        Close it: then the connection is closed too, and the other side stops writing.
        """
        with translated(self.name, self.estimate()):
            async with model_request_stream(
                self.model,
                self.asking.messages,
                model_settings={**self.asking.settings, **_in_trace()},
                model_request_parameters=self.asking.parameters,
                instrument=False,
            ) as stream:
                async for event in stream:
                    if piece := _text(event):
                        yield piece
                response = stream.get()
                self._require_end(response)
                yield response

    def paid(self, response: ModelResponse, written: str) -> Usage:
        """What the reply cost. written: what the model wrote, for an estimate where the counts are missing."""
        return self.prices.paid(response, sent_bytes=self.asking.sent_bytes, written=written)

    def estimate(self, written: str = "") -> Usage:
        """What a call without a count must have cost."""
        return self.prices.estimated(sent_bytes=self.asking.sent_bytes, written=written)

    def _require_end(self, response: ModelResponse) -> None:
        # A proxy that closes the connection politely in mid-stream leaves no other trace than a missing reason.
        # For chat, pydantic-ai then says "stop" all the same, as some servers give none: that is not enough here.
        reason = response.finish_reason
        told = "finish_reason" in (response.provider_details or {}) or reason == "content_filter"
        if not told and (reason is None or is_kind(self.model, "OpenAIChatModel")):
            raise RetryableError(Category.UNAVAILABLE, f"{self.name} ended its stream before its reply was whole")


def _in_trace() -> ModelSettings:
    return ModelSettings(extra_headers=passed_on())


def _text(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
