"""The reader of bodies: for any bytes the value that JSON has for them, or a refusal that repeats none of them."""

import asyncio
import json
import re
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentjobs.api.problems import Problem
from agentjobs.api.strict_json import BODY_LIMIT, MEMBER_LIMIT, StrictRequest, parse
from agentjobs.domain.values import DEPTH_LIMIT, INTEGER_LIMIT
from tests.properties.texts import ANYTHING, INTEGERS, TEXTS, VALUES, spelled

DETAILS = {
    "The body is not UTF-#.",
    "The body is no JSON (line #, column #).",
    "The body cannot be taken: the body is nested too deeply.",
    "The body cannot be taken: a number is too long.",
    "The body cannot be taken: NaN and infinities are no JSON.",
    "The body cannot be taken: an object has more than # names.",
    "The body cannot be taken: a name stands twice in one object.",
    "The body cannot be taken: a value is nested deeper than # levels.",
    "The body cannot be taken: an integer is beyond #**#.",
    "The body cannot be taken: a text has a NUL character.",
    "The body cannot be taken: a value has no JSON form.",
    "The body cannot be taken: a value has # bytes; # is the limit.",
}
"""All that the reader ever says, with # for a number of its own."""


def refusal(body: bytes) -> Problem | None:
    """Why the body is not taken."""
    try:
        parse(body)
    except Problem as problem:
        return problem
    return None


def refused_with(body: bytes) -> int | None:
    problem = refusal(body)
    return problem.status_code if problem else None


def nested(kinds: list[bool], core: str) -> bytes:
    """The core inside a list or an object for each of the kinds."""
    opened = "".join('{"a":' if is_object else "[" for is_object in kinds)
    closed = "".join("}" if is_object else "]" for is_object in reversed(kinds))
    return (opened + core + closed).encode()


@given(ANYTHING)
@example(b"[" * 100_000)
@example(b'{"a":' * 50_000)
@example(b"-" + b"1" * 200_000)
@example(b'"\\ud800"')
def test_any_bytes_are_their_json_value_or_a_refusal(body: bytes) -> None:
    problem = refusal(body)

    if problem is None:
        assert json.dumps(parse(body)) == json.dumps(json.loads(body.decode("utf-8")))
    else:
        assert problem.status_code in {400, 422}
        assert re.sub(r"\d+", "#", problem.detail) in DETAILS
        assert not problem.errors


@given(ANYTHING)
def test_what_is_malformed_is_what_no_json_reader_takes(body: bytes) -> None:
    try:
        json.loads(body.decode("utf-8"))
        is_json = True
    except (UnicodeDecodeError, json.JSONDecodeError):
        is_json = False
    except (RecursionError, ValueError):
        return  # readers differ

    status = refused_with(body)

    # What comes first decides: a reader that meets NaN need not go on to the broken end.
    assert status != 400 if is_json else status in {400, 422}


@given(VALUES.flatmap(lambda value: st.tuples(st.just(value), spelled(value))))
def test_a_value_comes_back_from_every_spelling(case: tuple[object, bytes]) -> None:
    value, body = case

    assert json.dumps(parse(body)) == json.dumps(value)


@given(st.lists(st.booleans(), max_size=3 * DEPTH_LIMIT), st.sampled_from(["1", '"x"', "null"]))
@example([True] * (DEPTH_LIMIT - 1), "1")
@example([False] * (DEPTH_LIMIT - 1), "1")
@example([True] * DEPTH_LIMIT, "1")
@example([False] * DEPTH_LIMIT, "1")
def test_a_value_is_taken_up_to_the_bound_of_depth(kinds: list[bool], core: str) -> None:
    status = refused_with(nested(kinds, core))

    assert status == (None if len(kinds) < DEPTH_LIMIT else 422)


@given(st.integers(0, 10**40) | st.integers(-3, 3).map(lambda off: INTEGER_LIMIT + off), st.sampled_from([1, -1]))
def test_an_integer_is_taken_below_the_bound(size: int, sign: int) -> None:
    status = refused_with(b"[%d]" % (sign * size))

    assert status == (None if size < INTEGER_LIMIT else 422)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_a_number_is_finite_and_what_json_has_for_it(number: str) -> None:
    value: int | float = json.loads(number)
    is_taken = abs(value) < (INTEGER_LIMIT if isinstance(value, int) else float("inf"))

    assert refused_with(number.encode()) == (None if is_taken else 422)
    if is_taken:
        assert repr(parse(number.encode())) == repr(value)


@given(st.dictionaries(TEXTS, INTEGERS, min_size=1), st.data())
def test_a_name_that_stands_twice_is_refused_in_every_spelling(
    members: dict[str, int], data: st.DataObject
) -> None:
    again = data.draw(st.sampled_from(sorted(members)))
    pairs = data.draw(st.permutations([*members.items(), (again, 0)]))
    names = [json.dumps(name, ensure_ascii=data.draw(st.booleans())) for name, _ in pairs]
    text = "{" + ",".join(f"{name}:{value}" for name, (_, value) in zip(names, pairs, strict=True)) + "}"
    inside = data.draw(st.sampled_from(["%s", "[1,%s]", '{"other":%s}', '[{"a":{"b":[%s]}}]']))

    assert refused_with(inside.replace("%s", text).encode()) == 422


@given(st.integers(MEMBER_LIMIT - 2, MEMBER_LIMIT + 2))
def test_an_object_is_taken_up_to_the_bound_of_names(count: int) -> None:
    body = json.dumps({f"n{number}": 0 for number in range(count)}).encode()

    assert refused_with(body) == (None if count <= MEMBER_LIMIT else 422)


@given(st.text(st.characters(categories=["Cs"]) | st.sampled_from("ab"), min_size=1), st.booleans())
def test_half_a_surrogate_pair_is_refused_and_a_whole_one_taken(text: str, is_name: bool) -> None:
    escaped = json.dumps(text)
    body = f'{{{escaped}:""}}' if is_name else f"[{escaped}]"
    in_pairs = json.loads(escaped)
    is_whole = not any("\ud800" <= character <= "\udfff" for character in in_pairs)

    assert refused_with(body.encode()) == (None if is_whole else 422)


def as_request(parts: list[bytes]) -> StrictRequest:
    """A request whose body arrives in these parts."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    arriving = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(arriving)

    headers = [(b"content-type", b"application/json")]
    return StrictRequest({"type": "http", "method": "POST", "headers": headers}, receive)


@given(VALUES.flatmap(spelled), st.lists(st.integers(0, 500), max_size=5))
def test_a_body_reads_the_same_in_whatever_parts_it_arrives(body: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    parts = [body[start:end] for start, end in pairwise(places)]

    value = asyncio.run(as_request(parts).json())

    assert json.dumps(value) == json.dumps(json.loads(body))


@given(st.integers(-2, 2), st.integers(500, 300_000))
def test_a_body_is_taken_up_to_the_bound_of_size(beyond: int, part_size: int) -> None:
    body = b"[]".ljust(BODY_LIMIT + beyond)
    parts = [body[start : start + part_size] for start in range(0, len(body), part_size)]

    reading = as_request(parts).json()

    if beyond <= 0:
        assert asyncio.run(reading) == []
    else:
        with pytest.raises(Problem) as refused:
            asyncio.run(reading)
        assert refused.value.status_code == 413


@pytest.mark.parametrize(
    "unit",
    [
        *(
            b"[",
            b'{"a":',
            b"1",
            b"-",
            b"1e",
            b"0.1,",
            b'"\\ud800',
            b'"\\\\',
            b'"a',
            b"[],",
            b" ",
            b"\xf0\x9f\x98\xa1",
        ),
        *(b'"\\u0000",', b"{},", b"null,", b"NaN,", b"[[],", b'{"a":{},'),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("opening", [b"", b"[", b'["', b'{"a":'], ids=ascii)
def test_the_largest_bodies_are_read_in_bounded_time(unit: bytes, opening: bytes) -> None:
    body = (opening + unit * (BODY_LIMIT // len(unit) + 1))[:BODY_LIMIT]

    # Where processors are shared even CPU time varies: one good run of three shows what reading takes.
    assert any(seconds < 1 for seconds in (_cpu_seconds(body) for _ in range(3)))


def _cpu_seconds(body: bytes) -> float:
    began = time.process_time()
    refusal(body)
    return time.process_time() - began
