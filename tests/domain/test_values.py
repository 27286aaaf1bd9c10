"""What may cross a boundary as JSON, and what is refused before an effect is completed with it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.domain.failures import Category, PermanentError
from agentjobs.domain.values import DEPTH_LIMIT, RESULT_LIMIT_BYTES, checked


class Colour(StrEnum):
    """A text with a name."""

    RED = "red"


def nested(depth: int, wrap: Callable[[object], object] = lambda inner: [inner]) -> object:
    """A value of this many levels."""
    value: object = "core"
    for _ in range(depth - 1):
        value = wrap(value)
    return value


def cyclic() -> list[object]:
    """A list that holds itself."""
    value: list[object] = []
    value.append(value)
    return value


BAD = {
    "lone surrogate": "\ud800",
    "surrogate in a key": {"\udfff": 1},
    "nul": "one\x00two",
    "nul in a key": {"\x00": 1},
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": -float("inf"),
    "5,000 digits": 10**5000,
    "2**53": 2**53,
    "-2**53": -(2**53),
    "2**53 + 1": 2**53 + 1,
    "100,000 levels of lists": nested(100_000),
    "100,000 levels of objects": nested(100_000, lambda inner: {"a": inner}),
    "one level too deep": nested(DEPTH_LIMIT + 1),
    "cycle": cyclic(),
    "tuple": (1, 2),
    "set": {1},
    "bytes": b"x",
    "decimal": Decimal("1.5"),
    "datetime": datetime(2025, 1, 1, tzinfo=UTC),
    "integer key": {1: "x"},
    "none key": {None: "x"},
    "object": object(),
    "class": int,
}
TEXT = st.text(alphabet=st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)
# Anything that may come out of a tool: most of it is refused.
ANYTHING = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [lambda bad: bad, lambda bad: {"a": [1, bad]}], ids=["alone", "inside"])
def test_what_json_or_the_ledger_cannot_hold_is_bad_output(bad: object, place: Callable[[object], object]) -> None:
    with pytest.raises(PermanentError) as refused:
        checked(place(bad))

    assert refused.value.category is Category.BAD_OUTPUT


@given(JSON)
def test_a_json_value_comes_back_equal_and_survives_a_round_trip(value: Any) -> None:
    plain = checked(value)

    assert plain == value
    assert json.loads(json.dumps(plain)) == plain


@given(ANYTHING)
def test_whatever_a_tool_returns_is_plain_json_or_refused(value: object) -> None:
    try:
        plain = checked(value)
    except PermanentError as refused:
        assert refused.category in {Category.BAD_OUTPUT, Category.PAYLOAD_TOO_LARGE}
    else:
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain == value


def test_the_deepest_value_allowed_passes() -> None:
    assert checked(nested(DEPTH_LIMIT)) == nested(DEPTH_LIMIT)


@pytest.mark.parametrize("edge", [2**53 - 1, -(2**53) + 1, 0, -0.0, 5e-324, 1.7976931348623157e308, "", {}, []])
def test_values_at_the_edge_pass(edge: object) -> None:
    assert checked(edge) == edge


def test_an_enum_of_texts_becomes_a_plain_text() -> None:
    assert type(checked(Colour.RED)) is str


def test_what_comes_back_is_a_copy() -> None:
    value: dict[str, object] = {"list": [1]}

    plain = checked(value)
    value["list"] = "changed"

    assert plain == {"list": [1]}


def test_the_limit_counts_bytes_of_utf_8() -> None:
    fits = "ä" * ((RESULT_LIMIT_BYTES - 2) // 2)  # two bytes each, and two quotes

    assert checked(fits) == fits
    with pytest.raises(PermanentError) as refused:
        checked(fits + "a")

    assert refused.value.category is Category.PAYLOAD_TOO_LARGE
    assert str(RESULT_LIMIT_BYTES) in str(refused.value)


def test_a_caller_may_ask_for_a_tighter_limit() -> None:
    with pytest.raises(PermanentError) as refused:
        checked("x" * 11, limit_bytes=12)

    assert refused.value.category is Category.PAYLOAD_TOO_LARGE
    assert checked("x" * 10, limit_bytes=12) == "x" * 10


@pytest.mark.parametrize("value", ["s3cr3t\x00", ["s3cr3t", float("nan")], {"s3cr3t": b""}, "s3cr3t" * 100_000])
def test_a_refusal_quotes_nothing_of_the_value(value: object) -> None:
    with pytest.raises(PermanentError) as refused:
        checked(value)

    assert "s3cr3t" not in str(refused.value)
