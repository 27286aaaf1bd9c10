from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from agentjobs.providers.prices import Prices


def reply(model: str | None = None, **usage: Any) -> ModelResponse:
    return ModelResponse(parts=[], usage=RequestUsage(**usage), model_name=model)


def test_the_most_is_the_price_of_the_dearer_direction() -> None:
    # gpt-4o-mini: 0.15 USD a million in, 0.60 out.
    assert Prices("openai", "gpt-4o-mini").most_usd(1_000_000) == Decimal("0.6")


def test_a_model_without_a_known_price_costs_nothing() -> None:
    prices = Prices("openai", "a-model-of-our-own")

    assert prices.most_usd(1_000_000) == Decimal(0)
    assert prices.paid(reply(input_tokens=10, output_tokens=5), sent_bytes=9, written="x").usd == Decimal(0)


def test_a_provider_without_a_known_price_list_costs_nothing() -> None:
    assert Prices("nobody", "gpt-4o-mini").most_usd(1_000_000) == Decimal(0)


def test_a_call_costs_its_tokens_exactly() -> None:
    paid = Prices("openai", "gpt-4o-mini").paid(
        reply(input_tokens=1_001, output_tokens=7), sent_bytes=1, written=""
    )

    assert (paid.tokens_in, paid.tokens_out) == (1_001, 7)
    assert paid.usd == Decimal("0.00015015") + Decimal("0.0000042")


def test_the_version_in_the_answer_gives_the_price() -> None:
    paid = Prices("openai", "gpt-4o-mini").paid(
        reply("gpt-4o-2024-08-06", input_tokens=1_000_000, output_tokens=0), sent_bytes=1, written=""
    )

    assert paid.usd == Decimal("2.5")


def test_a_version_that_nobody_knows_costs_what_the_named_model_costs() -> None:
    paid = Prices("openai", "gpt-4o-mini").paid(
        reply("our-alias", input_tokens=1_000_000, output_tokens=0), sent_bytes=1, written=""
    )

    assert paid.usd == Decimal("0.15")


def test_counts_that_contradict_each_other_cost_the_most() -> None:
    prices = Prices("openai", "gpt-4o-mini")

    paid = prices.paid(reply(input_tokens=10, cache_read_tokens=500, output_tokens=10), sent_bytes=1, written="")

    assert paid.usd == prices.most_usd(20)


@pytest.mark.parametrize("usage", [{}, {"input_tokens": 10**9}, {"output_tokens": -1}])
def test_missing_or_unbelievable_counts_are_estimated(usage: dict[str, Any]) -> None:
    paid = Prices("openai", "gpt-4o-mini").paid(reply(**usage), sent_bytes=1_000, written="Grüße")

    assert (paid.tokens_in, paid.tokens_out) == (500, 4)
    assert paid.usd > 0


def test_an_estimate_is_never_zero() -> None:
    paid = Prices("openai", "gpt-4o-mini").estimated(sent_bytes=0)

    assert (paid.tokens_in, paid.tokens_out) == (1, 1)
