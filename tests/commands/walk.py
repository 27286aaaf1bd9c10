"""Every command there is, with words that make it ask the API. A new command takes part by itself."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import typer

from starter import app

HERE: Final = frozenset({"dev", "demo"})
"""These ask no API: they start one."""

ALSO: Final = {
    "submit": ("My printer is on fire",),
    "budget set": ("--tokens", "1000"),
    "quota set": ("--running", "3"),
    "keys create": ("--role", "submit"),
    "redrives start": ("--note", "n", "--all"),
}
"""What a command needs beside what it declares as required."""

VALUES: Final = {"action": "tickets:create", "url": "https://hooks.example.com/jobs"}
"""Of required ones that take not just any word."""


@cache
def commands() -> dict[str, Any]:
    """Each command by its words."""
    return dict(_below(typer.main.get_command(app), ()))


def asking() -> list[str]:
    """The words of those that ask the API."""
    return [words for words in commands() if words not in HERE]


def invocation(words: str) -> list[str]:
    """The words with all that the command requires."""
    given = [word for parameter in commands()[words].params for word in _required(parameter)]
    return [*words.split(), *given, *ALSO.get(words, ())]


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(words), command
        return
    for name, one in below.items():
        yield from _below(one, (*words, name))


def _required(parameter: Any) -> list[str]:
    if not parameter.required:
        return []
    value = VALUES.get(parameter.name, "a")
    return [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]
