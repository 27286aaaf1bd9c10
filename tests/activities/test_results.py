"""Results that cannot be kept are refused before the effect is completed with them."""

from typing import Any

import pytest
from pydantic import BaseModel

from agentjobs.domain.effects import EffectClass
from agentjobs.domain.job import Frozen
from tests.activities.stage import Destination, Stage, told

MEGABYTE = 1024 * 1024


class Text(Frozen):
    """A result of a text."""

    text: str


class Number(Frozen):
    """A result of a number."""

    number: float


class Anything(Frozen):
    """A result that declares no form."""

    value: Any


@pytest.mark.parametrize(
    ("result", "category"),
    [
        (Text(text="\ud800"), "bad_output"),
        (Text(text="one\x00two"), "bad_output"),
        (Number(number=float("nan")), "bad_output"),
        (Anything(value={"deep": [float("nan")]}), "bad_output"),
        (Anything(value=float("inf")), "bad_output"),
        (Anything(value=2**53 + 1), "bad_output"),
        (Anything(value=b"\xff"), "bad_output"),
        (Text(text="x" * (5 * MEGABYTE // 2)), "payload_too_large"),
    ],
    ids=["surrogate", "nul", "nan", "nan inside", "infinity", "2**53+1", "bytes", "2.5 MB"],
)
@pytest.mark.parametrize("effect_class", [EffectClass.IDEMPOTENT, EffectClass.TRANSACTIONAL])
async def test_a_result_that_cannot_be_kept_is_permanent_and_completes_nothing(
    stage: Stage, effect_class: EffectClass, result: BaseModel, category: str
) -> None:
    job = await stage.scene.accept()

    answer = await told(stage.carry_out(job.id, Destination(lambda _: result), effect_class))

    assert answer == (category, False)
    assert (await stage.scene.effect(job.id)).result is None
    assert await stage.scene.outcomes(job.id) == [("failed", category)]


async def test_a_result_of_any_plain_form_is_kept_as_it_is(stage: Stage) -> None:
    job = await stage.scene.accept()
    value = {"text": "Grüße 😡", "numbers": [1, 2.5, -0.0, 2**53 - 1], "nothing": None, "yes": True}

    result = await stage.carry_out(job.id, Destination(lambda _: Anything(value=value)))

    assert result == (await stage.scene.effect(job.id)).result == {"value": value}
