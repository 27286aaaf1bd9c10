"""JSON as bytes, whole and broken, for the properties of its reader."""

import json
from typing import Any

from hypothesis import strategies as st

from agentjobs.domain.values import INTEGER_LIMIT

INTEGERS = st.integers(-INTEGER_LIMIT + 1, INTEGER_LIMIT - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)
"""What the reader takes."""

_WORDS = st.sampled_from(
    [
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud800", b"\\u0000", b"0000"),
        *(b"NaN", b"-Infinity", b"1e999", b"-0", b"01", b"1.", b".5", b"9007199254740992", b"9" * 5_000),
        *(b"true", b"null", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xff", b"\x00", b" ", b"\n", b"a", b"//", b"'"),
        *(b"[" * 500, b'{"a":' * 500, b'"a":1,"a":2', b'"a"'),
    ]
)


def spelled(value: object) -> st.SearchStrategy[bytes]:
    """The value in one of the spellings that writers of JSON use."""
    options: list[dict[str, Any]] = [
        {},
        {"ensure_ascii": False},
        {"indent": 2},
        {"separators": (",", ":"), "ensure_ascii": False},
    ]
    return st.sampled_from(options).map(lambda chosen: json.dumps(value, **chosen).encode("utf-8"))


@st.composite
def _broken(draw: st.DrawFn) -> bytes:
    whole = draw(VALUES.flatmap(spelled))
    start = draw(st.integers(0, len(whole)))
    end = draw(st.integers(start, min(len(whole), start + 8)))
    return whole[:start] + draw(_WORDS | st.binary(max_size=4)) + whole[end:]


ANYTHING = st.one_of(
    st.binary(),
    VALUES.flatmap(spelled),
    _broken(),
    st.lists(_WORDS, max_size=12).map(lambda words: b"".join(words)),
)
"""Bytes that may look like JSON."""
