"""The text of a ticket and of a search, as trackers elsewhere take it."""

from __future__ import annotations

import re
from typing import Final

from agentjobs.domain.failures import Category, PermanentError

_UNSENDABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_WORD: Final = re.compile(r"\w+")
_OPERATORS: Final = frozenset({"and", "or", "not"})
_LONGEST_WORD: Final = 30  # GitHub takes 256 characters of a query; beyond this nobody would type it again


def sendable(text: str) -> str:
    """The text with plain line ends. Raises PermanentError for what no JSON API can be trusted to keep."""
    if _UNSENDABLE.search(text):
        raise PermanentError(Category.INVALID_INPUT, "a ticket's text has a NUL or half a surrogate pair")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    """As a title: trackers elsewhere have one line for it."""
    return " ".join(sendable(text).split())


def distinctive_words(query: str, *, at_most: int) -> list[str]:
    """The longest different words of a query: the short ones are in every ticket.

    Letters, digits and underscores only, so that no word is an operator or a qualifier of a search language.
    """
    words = {word.casefold(): word for word in _WORD.findall(query) if len(word) <= _LONGEST_WORD}
    return sorted((words[w] for w in words if w not in _OPERATORS), key=len, reverse=True)[:at_most]
