"""Keys that stay the same over everything that repeats a step, and fingerprints that tell arguments apart."""

import json
from inspect import signature

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentjobs.domain import keys

EXACT_INTEGERS = st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)
# Text without lone surrogates; floats without what JSON lacks.
LEAVES = st.none() | st.booleans() | EXACT_INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_a_step_key_is_made_of_the_workflow_id_and_the_activity_id() -> None:
    assert keys.step_key("j1", keys.tool_step(1, "create_ticket")) == "agent-job-j1/step-1.create_ticket"


def test_a_step_key_knows_nothing_of_attempt_run_generation_or_clock() -> None:
    assert list(signature(keys.step_key).parameters) == ["job_id", "activity_id"]


def test_every_step_of_a_job_has_a_key_of_its_own() -> None:
    steps = [
        keys.PLAN,
        keys.ANSWER,
        *(keys.model_step(step) for step in (1, 2, 11)),
        *(keys.tool_step(step, tool) for step in (1, 2, 11) for tool in ("create_ticket", "search_tickets")),
    ]
    steps += [keys.undo_step(step) for step in steps]

    assert len({keys.step_key("j1", step) for step in steps}) == len(steps)


def test_two_jobs_share_no_key() -> None:
    assert keys.step_key("j1", keys.PLAN) != keys.step_key("j11", keys.PLAN)


@given(st.integers(min_value=1, max_value=10_000), st.from_regex(r"[a-z_]{1,40}", fullmatch=True))
def test_number_and_tool_are_read_back_from_the_activity_id(step: int, tool: str) -> None:
    activity_id = keys.tool_step(step, tool)

    assert (keys.step_number(activity_id), keys.tool_of(activity_id)) == (step, tool)


@given(VALUES)
def test_the_order_of_an_objects_keys_does_not_count(value: JsonValue) -> None:
    assert keys.fingerprint(_reversed(value)) == keys.fingerprint(value)


@given(VALUES)
def test_a_fingerprint_survives_a_round_trip_through_json(value: JsonValue) -> None:
    assert keys.fingerprint(json.loads(json.dumps(value))) == keys.fingerprint(value)


@given(st.text(), st.text())
def test_texts_have_the_same_fingerprint_exactly_when_they_are_equal(one: str, other: str) -> None:
    assert (keys.fingerprint([one]) == keys.fingerprint([other])) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (0, -0.0), (100, 1e2), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1})],
)
def test_the_same_value_written_otherwise_has_the_same_fingerprint(one: JsonValue, other: JsonValue) -> None:
    assert keys.fingerprint(one) == keys.fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, None),
        (0, False),
        ([], {}),
        ([1, 2], [2, 1]),
        ("\u00e9", "e\u0301"),  # looks the same, and is another text
        ("a", "a "),
        ({"a": None}, {}),
        (0.1, 0.1000001),
        (2**53 - 1, 2**53 - 2),
    ],
)
def test_another_value_has_another_fingerprint(one: JsonValue, other: JsonValue) -> None:
    assert keys.fingerprint(one) != keys.fingerprint(other)


def test_a_fingerprint_is_that_of_rfc_8785() -> None:
    # printf '{"a":1,"é":"x"}' | sha256sum
    expected = "b791c0b1117351f7cdc71994db71bd7616f4725a9a49bed10db3f52340c59195"

    assert keys.fingerprint({"é": "x", "a": 1.0}) == expected


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), "\ud800", {"\udfff": 1}, 2**53, 2**53 + 1, -(2**53) - 1],
)
def test_what_json_cannot_say_exactly_has_no_fingerprint(value: JsonValue) -> None:
    with pytest.raises(ValueError, match="no canonical JSON form"):
        keys.fingerprint({"deep": [value]})


def _reversed(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value
