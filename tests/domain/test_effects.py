"""The table of doubt: what is done with an effect that may have happened."""

import pytest

from agentjobs.domain.effects import EffectClass, Resolution, resolve

IN_DOUBT = {
    EffectClass.READ_ONLY: Resolution.EXECUTE,
    EffectClass.TRANSACTIONAL: Resolution.EXECUTE,
    EffectClass.IDEMPOTENT: Resolution.EXECUTE,
    EffectClass.RECONCILABLE: Resolution.LOOK_UP_FIRST,
    EffectClass.UNSAFE: Resolution.ASK_A_PERSON,
}


@pytest.mark.parametrize("effect_class", EffectClass)
def test_without_a_doubt_every_effect_is_carried_out(effect_class: EffectClass) -> None:
    assert resolve(effect_class, in_doubt=False) is Resolution.EXECUTE


@pytest.mark.parametrize("effect_class", EffectClass)
def test_a_doubt_is_resolved_by_the_declared_class(effect_class: EffectClass) -> None:
    assert resolve(effect_class, in_doubt=True) is IN_DOUBT[effect_class]
