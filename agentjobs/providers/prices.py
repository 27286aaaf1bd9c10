"""What a model call cost: tokens as the provider counts them, and USD by the price list of genai-prices.

The list is the one that came with the package: nothing fetches a newer one at run time, so that the same call has
the same price on every worker of a release.
"""

import math
from decimal import Decimal
from typing import Final

import genai_prices
from genai_prices.types import AbstractUsage
from pydantic_ai.messages import ModelResponse

from agentjobs.domain.budget import Usage

_BYTES_PER_TOKEN: Final = 2
"""For an estimate that is rarely too low: English has four bytes of UTF-8 to a token, most other scripts three."""

_BELIEVABLE_TOKENS: Final = 100_000_000
"""No model reads or writes as many in one call: a larger count is an error of the server."""


class Prices:
    """Prices of one model at one provider."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model

    def most_usd(self, tokens: int) -> Decimal:
        """The price of so many tokens at the dearer of the two rates, long context included; 0 if unknown."""
        try:
            price = genai_prices.calc_price(
                genai_prices.Usage(input_tokens=tokens, output_tokens=tokens),
                self._model,
                provider_id=self._provider,
            )
        except LookupError:
            return Decimal(0)
        return max(price.input_price, price.output_price)

    def paid(self, response: ModelResponse, *, sent_bytes: int, written: str) -> Usage:
        """What the reply cost.

        Counts that are missing (some compatible servers send none) or beyond belief are replaced by an estimate: a
        token for every two bytes, in both directions, and never zero. Such usage is too high rather than too low.
        """
        tokens_in, tokens_out = response.usage.input_tokens, response.usage.output_tokens
        if not _believable(tokens_in, tokens_out):
            return self.estimated(sent_bytes=sent_bytes, written=written)
        usd = self._usd(response.usage, response.model_name, tokens_in + tokens_out)
        return Usage(tokens_in=tokens_in, tokens_out=tokens_out, usd=usd)

    def estimated(self, *, sent_bytes: int, written: str = "") -> Usage:
        """What a call without counts must have cost, rather too high than too low."""
        tokens_in = _tokens(sent_bytes)
        tokens_out = _tokens(len(written.encode("utf-8", "replace")))
        usage = genai_prices.Usage(input_tokens=tokens_in, output_tokens=tokens_out)
        return Usage(
            tokens_in=tokens_in, tokens_out=tokens_out, usd=self._usd(usage, None, tokens_in + tokens_out)
        )

    def _usd(self, usage: AbstractUsage, answered_by: str | None, tokens: int) -> Decimal:
        # The name in the answer is the exact version; a server that renames its models answers with none we know.
        for model in (answered_by, self._model):
            try:
                if model:
                    return genai_prices.calc_price(usage, model, provider_id=self._provider).total_price
            except LookupError:
                continue
            except ValueError:  # counts that contradict each other, such as more cached tokens than tokens
                return self.most_usd(tokens)
        return Decimal(0)


def _believable(tokens_in: int, tokens_out: int) -> bool:
    counts = (tokens_in, tokens_out)
    return any(counts) and all(0 <= count <= _BELIEVABLE_TOKENS for count in counts)


def _tokens(size_bytes: int) -> int:
    return max(1, math.ceil(size_bytes / _BYTES_PER_TOKEN))
