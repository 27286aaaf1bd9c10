"""What fits a budget, and that sums are exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentjobs.domain.budget import Reservation, Usage, fits
from agentjobs.domain.job import Budget

AMOUNTS = st.decimals(min_value=0, max_value=1000, places=6)
TOKENS = st.integers(min_value=0, max_value=10**9)
RESERVATIONS = st.builds(Reservation, tokens=TOKENS, usd=AMOUNTS)
USAGES = st.builds(Usage, tokens_in=TOKENS, tokens_out=TOKENS, usd=AMOUNTS)
BUDGETS = st.builds(
    Budget,
    tokens=st.none() | st.integers(min_value=1, max_value=10**9),
    usd=st.none() | st.decimals(min_value="0.000001", max_value=1000, places=6),
)


def test_a_call_fits_up_to_the_last_token() -> None:
    budget, spent = Budget(tokens=100), Reservation(tokens=60)

    assert fits(budget, spent, Reservation(tokens=40))
    assert not fits(budget, spent, Reservation(tokens=41))


def test_a_call_fits_up_to_the_last_millionth_of_a_dollar() -> None:
    budget, spent = Budget(usd=Decimal("0.3")), Reservation(usd=Decimal("0.1"))

    assert fits(budget, spent, Reservation(usd=Decimal("0.2")))  # with floats it would not
    assert not fits(budget, spent, Reservation(usd=Decimal("0.200001")))


def test_each_limit_holds_of_its_own() -> None:
    budget = Budget(tokens=10, usd=Decimal(1))

    assert not fits(budget, Reservation(), Reservation(tokens=11))
    assert not fits(budget, Reservation(), Reservation(usd=Decimal(2)))


@given(RESERVATIONS, RESERVATIONS)
def test_without_limits_everything_fits(spent: Reservation, wanted: Reservation) -> None:
    assert fits(Budget(), spent, wanted)


@given(BUDGETS, RESERVATIONS, RESERVATIONS)
def test_what_fits_still_fits_after_less_was_spent(
    budget: Budget, spent: Reservation, wanted: Reservation
) -> None:
    less = Reservation(tokens=spent.tokens // 2, usd=spent.usd / 2)

    assert fits(budget, less, wanted) or not fits(budget, spent, wanted)


@given(USAGES, USAGES, USAGES)
def test_usages_add_up_exactly_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (three + two)
    assert (one + two).tokens == one.tokens + two.tokens


@pytest.mark.parametrize("wrong", [{"tokens_in": -1}, {"tokens_out": -1}, {"usd": Decimal("-0.01")}])
def test_no_call_gives_tokens_or_money_back(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Usage.model_validate(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 0},
        {"tokens": 1_000_000_001},
        {"usd": 0},
        {"usd": "0.0000001"},
        {"usd": "1234567.0"},
        {"usd": "NaN"},
        {"usd": "Infinity"},
    ],
)
def test_a_budget_the_ledger_could_not_hold_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate(wrong)
