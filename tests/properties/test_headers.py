"""The readers of headers and cursors: for anything at all the value that it stands for, or a refusal."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fastapi import Request
from hypothesis import assume, given
from hypothesis import strategies as st

from agentjobs.api.cursors import cursor_after, position_of
from agentjobs.api.idempotency_key import idempotency_key
from agentjobs.api.problems import Problem
from agentjobs.api.trace_context import caller_of
from agentjobs.domain.job import IDENTIFIER_PATTERN
from agentjobs.domain.retry_after import LONGEST_READ_SECONDS, asked_seconds

LIMIT = 255
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=LIMIT)
LATIN = st.text(st.characters(max_codepoint=0xFF))
MOMENTS = st.datetimes(timezones=st.just(UTC))
IDENTIFIERS = st.from_regex(IDENTIFIER_PATTERN, fullmatch=True)
HEX = st.text("0123456789abcdef", min_size=32, max_size=32)


def request_with(name: str, *values: str) -> Request:
    """A request with this header, so many times."""
    headers = [(name.encode(), value.encode("latin-1")) for value in values]
    return Request({"type": "http", "method": "POST", "headers": headers})


def read(value: str) -> str | None:
    return idempotency_key(request_with("idempotency-key", value))


def quoted(text: str) -> str:
    """As a structured field's string (RFC 8941, 4.1.6)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(value: str) -> str | None:
    """What such a string says; None for what is none. Character by character, as RFC 8941, 4.2.5 tells it."""
    if len(value) < 2 or value[0] != '"':
        return None
    said, rest = list[str](), iter(value[1:])
    for character in rest:
        if character == '"':
            return None if any(True for _ in rest) else "".join(said)
        if character == "\\":
            character = next(rest, "")
            if character not in {'"', "\\"}:
                return None
        elif not " " <= character <= "~":
            return None
        said.append(character)
    return None


def bare(value: str) -> str | None:
    return value if all("!" <= one <= "~" and one not in '",;\\' for one in value) else None


@given(PRINTABLE)
def test_every_printable_text_is_a_key_in_quotes(text: str) -> None:
    assert read(quoted(text)) == text


@given(LATIN | PRINTABLE.map(quoted) | st.text('"\\ab', max_size=8))
def test_a_key_is_what_the_grammar_has_for_it_or_is_refused(value: str) -> None:
    value = value.strip(" \t")
    key = unquoted(value) if value.startswith('"') else bare(value)

    if key and len(key) <= LIMIT:
        assert read(value) == key
    else:
        with pytest.raises(Problem) as refused:
            read(value)
        assert refused.value.status_code == 400


@given(st.lists(PRINTABLE.map(quoted), min_size=2, max_size=4))
def test_more_than_one_key_is_refused(values: list[str]) -> None:
    with pytest.raises(Problem):
        idempotency_key(request_with("idempotency-key", *values))


@given(HEX, HEX, st.text("0123456789abcdef", min_size=2, max_size=2), st.sampled_from(["00", "01", "cc", "fe"]))
def test_a_trace_is_joined(trace: str, parent: str, flags: str, version: str) -> None:
    assume(set(trace) != {"0"} and set(parent[:16]) != {"0"})

    told = caller_of(request_with("traceparent", f"{version}-{trace}-{parent[:16]}-{flags}"))

    assert told is not None
    assert (f"{told.trace_id:032x}", f"{told.span_id:016x}") == (trace, parent[:16])
    assert told.trace_flags.sampled == bool(int(flags, 16) & 1)


@given(HEX, st.sampled_from([("0" * 32, None), (None, "0" * 16)]))
def test_a_trace_or_a_parent_of_zeros_is_none(digits: str, zeros: tuple[str | None, str | None]) -> None:
    trace, parent = zeros[0] or digits, zeros[1] or digits[:16]

    assert caller_of(request_with("traceparent", f"00-{trace}-{parent}-01")) is None


@given(LATIN | st.from_regex(r"[0-9a-g]{2}-[0-9a-g]{30,33}-[0-9a-g]{15,17}-[0-9a-g]{1,3}(-.*)?"))
def test_any_other_trace_begins_anew(value: str) -> None:
    caller = caller_of(request_with("traceparent", value.encode("latin-1", "ignore").decode("latin-1")))

    assert caller is None or (caller.is_valid and f"{caller.trace_id:032x}-{caller.span_id:016x}" in value)


@given(MOMENTS, IDENTIFIERS)
def test_a_cursor_leads_back_to_its_row(moment: datetime, row_id: str) -> None:
    assert position_of(cursor_after(moment, row_id)) == (moment, row_id)


@given(MOMENTS, IDENTIFIERS, st.data())
def test_a_cursor_that_was_changed_is_a_position_or_refused(
    moment: datetime, row_id: str, data: st.DataObject
) -> None:
    cursor = cursor_after(moment, row_id)
    place = data.draw(st.integers(0, len(cursor) - 1))
    changed = cursor[:place] + data.draw(st.text(max_size=3)) + cursor[place + 1 :]

    check_position(lambda: position_of(changed))


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_a_cursor_that_we_did_not_give_is_refused(cursor: str) -> None:
    check_position(lambda: position_of(cursor))


def check_position(look: Callable[[], tuple[datetime, str] | None]) -> None:
    """Either a moment in UTC and a well-formed id, or 422."""
    try:
        position = look()
    except Problem as problem:
        assert problem.status_code == 422
        assert [error.pointer for error in problem.errors] == ["query:cursor"]
    else:
        assert position is not None
        assert position[0].tzinfo is UTC
        assert position[1].isascii() and 1 <= len(position[1]) <= 64


ASKED = ("retry-after", "retry-after-ms", "date")
HEADERS = st.dictionaries(
    st.sampled_from(ASKED),
    LATIN | st.floats().map(str) | st.integers().map(str) | st.datetimes().map(format_datetime),
)


@given(HEADERS)
def test_any_answer_asks_for_a_bounded_wait_or_for_none(headers: dict[str, str]) -> None:
    seconds = asked_seconds(headers, NOW)

    assert seconds is None or 0 <= seconds <= LONGEST_READ_SECONDS


@given(st.integers(0, 10**12))
def test_seconds_are_read_as_they_are(seconds: int) -> None:
    assert asked_seconds({"retry-after": str(seconds)}, NOW) == min(seconds, LONGEST_READ_SECONDS)


@given(st.integers(-(10**9), 10**9))
def test_a_date_is_as_far_away_as_it_says(seconds: int) -> None:
    until = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)

    assert asked_seconds({"retry-after": until}, NOW) == min(max(seconds, 0), LONGEST_READ_SECONDS)
