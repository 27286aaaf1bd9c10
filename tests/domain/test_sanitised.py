"""Messages that may be shown: no secret, one printable line, short."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.domain.failures import MESSAGE_LIMIT, sanitised

# What a message may hold, and the part of it that must not be shown.
SECRETS = {
    "bearer": ("Bearer s3cr3t.va-lue~+/=", "s3cr3t"),
    "basic": ("basic czNjcjN0OnB3", "czNjcjN0"),
    "header": ("Authorization: Bearer s3cr3tvalue", "s3cr3t"),
    "lower header": ("authorization=s3cr3tvalue", "s3cr3t"),
    "url": ("postgresql://u53r:s3cr3t@db.example:5432/x", "s3cr3t"),
    "url without user": ("redis://:s3cr3t@cache:6379/0", "s3cr3t"),
    "api key": ("api_key=s3cr3tvalue", "s3cr3t"),
    "api-key header": ("x-api-key: s3cr3tvalue", "s3cr3t"),
    "apikey": ("ApiKey = s3cr3tvalue", "s3cr3t"),
    "key": ("key: s3cr3tvalue", "s3cr3t"),
    "token": ("token=s3cr3tvalue", "s3cr3t"),
    "secret": ("SECRET: s3cr3tvalue", "s3cr3t"),
    "password": ("password=s3cr3tvalue", "s3cr3t"),
    "prefixed name": ("access_token=s3cr3tvalue", "s3cr3t"),
    "environment": ("DB_PASSWORD=s3cr3tvalue", "s3cr3t"),
    "query": ("GET /x?client_secret=s3cr3tvalue&a=1", "s3cr3t"),
    "json": ('{"password": "s3cr3tvalue"}', "s3cr3t"),
    "json api key": ('{"api_key":"s3cr3tvalue"}', "s3cr3t"),
    "python": ("{'token': 's3cr3tvalue'}", "s3cr3t"),
    "our key": ("ajk_s3cr3ts3cr3t", "s3cr3t"),
    "sk": ("sk-proj-s3cr3ts3cr3t", "s3cr3t"),
    "ghp": ("ghp_s3cr3ts3cr3t", "s3cr3t"),
    "gho": ("gho_s3cr3ts3cr3t", "s3cr3t"),
    "github_pat": ("github_pat_s3cr3ts3cr3t", "s3cr3t"),
    "whsec": ("whsec_s3cr3ts3cr3t", "s3cr3t"),
    "slack": ("xoxb-s3cr3ts3cr3t", "s3cr3t"),
    "mail": ("jane.d0e+x@mail.example.org", "d0e"),
}
AROUND = (
    "{}",
    "the call failed with {} at step 3",
    'HTTP 401: "{}"',
    "error({})",
    "first\n{}\nlast",
    "{}" + "x" * 2 * MESSAGE_LIMIT,
    "x" * (MESSAGE_LIMIT - 40) + " {} and more",
)
# Few letters, so that the forms of secrets come up by chance.
NEAR_SECRETS = st.text(alphabet="abk@:/=.-_ \n\x00\u2028\ud800eyBearer", max_size=80)
NOT_ONE_LINE = {"Cc", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_a_secret_is_not_shown_wherever_it_stands(text: str, secret: str) -> None:
    messages = [around.format(text) for around in AROUND]

    leaks = [message for message in messages if secret in sanitised(message)]

    assert secret in text
    assert leaks == []


def test_what_is_no_secret_is_shown_as_it_is() -> None:
    message = "the ledger could not take a statement (UniqueViolationError) at step-1.create_ticket, 429 of 500"

    assert sanitised(message) == message


def test_the_name_of_a_secret_stays_so_that_the_message_can_be_understood() -> None:
    assert sanitised("bad api_key=abc for https://u:p@host/x") == "bad api_key=*** for https://***@host/x"


@pytest.mark.parametrize("odd", ["\x00", "\n", "\r\n", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800"])
def test_what_would_break_the_line_becomes_a_space(odd: str) -> None:
    assert sanitised(f"one{odd}two") == "one two"


def test_a_secret_is_redacted_before_the_message_is_cut() -> None:
    cut_inside_the_secret = "x" * (MESSAGE_LIMIT - 6) + " ajk_s3cr3ts3cr3t"

    shown = sanitised(cut_inside_the_secret)

    assert shown.endswith(" ***")


def test_a_message_at_the_limit_is_kept_and_one_beyond_it_shows_that_it_was_cut() -> None:
    assert sanitised("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT
    assert sanitised("x" * (MESSAGE_LIMIT + 1)) == "x" * (MESSAGE_LIMIT - 1) + "…"


@given(st.text(max_size=3 * MESSAGE_LIMIT) | NEAR_SECRETS)
def test_every_message_becomes_one_short_line_that_the_ledger_can_hold(message: str) -> None:
    shown = sanitised(message)

    assert len(shown) <= MESSAGE_LIMIT
    assert not {unicodedata.category(character) for character in shown} & NOT_ONE_LINE
    assert shown.encode("utf-8").decode("utf-8") == shown


@given(NEAR_SECRETS)
def test_a_second_pass_brings_nothing_back(message: str) -> None:
    once = sanitised(message)

    twice = sanitised(once)

    assert set(twice) <= set(once) | set("*")
    assert len(twice) <= MESSAGE_LIMIT


LONG = {
    "one word": "a" * 20_000,
    "dotted": "a." * 10_000,
    "half a mail address": "a@" + "b" * 20_000,
    "half a url": "://" + "a" * 20_000,
    "keys": "key " * 5_000,
    "equals": "key=" * 5_000,
    "spaces": "bearer" + " " * 20_000,
}


@pytest.mark.parametrize("message", LONG.values(), ids=LONG)
def test_a_long_message_costs_milliseconds(message: str) -> None:
    began = time.process_time()

    sanitised(message)

    # It runs in the event loop of every worker, and in workflows, where two seconds count as a deadlock.
    assert time.process_time() - began < 0.2
