"""Filters of lists, as a form in the address gives them: an empty field is one that was left out."""

import re
from enum import StrEnum
from typing import Final, TypeVar

from agentjobs.api.problems import unacceptable
from agentjobs.domain.job import IDENTIFIER_PATTERN

Choice = TypeVar("Choice", bound=StrEnum)
PAGE_ROWS: Final = 50
_IDENTIFIER: Final = re.compile(IDENTIFIER_PATTERN)


def chosen(kind: type[Choice], value: str, field: str) -> Choice | None:
    """One of a closed set. Raises Problem 422."""
    if not value:
        return None
    try:
        return kind(value)
    except ValueError:
        raise unacceptable(f"query:{field}", "There is no such choice.") from None


def identifier(value: str, field: str) -> str | None:
    """A name. Raises Problem 422."""
    if value and not _IDENTIFIER.fullmatch(value):
        raise unacceptable(f"query:{field}", "Use letters, digits, '_' and '-' only.")
    return value or None
