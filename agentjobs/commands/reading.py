"""Where the text of a request comes from: the argument, standard input, a file, the lines of a file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentjobs.commands.errors import WrongUsage

LONGEST_TEXT_BYTES: Final = 8 * 1024 * 1024
"""Far beyond what the API takes; without an end, `submit @/dev/zero` would fill the memory."""


class Written(BaseModel):
    """What one line of a file may say."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    text: str
    key: Annotated[str, Field(min_length=1)] | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Line:
    """One line of a file of requests; `wrong` says why it cannot be sent."""

    number: int
    written: Written | None = None
    wrong: str | None = None


def text_of(argument: str) -> str:
    """TEXT itself, `-` for standard input, `@FILE` for a file."""
    if argument == "-":
        return _decoded(_read(_standard_input(), "standard input"), "standard input")
    if argument.startswith("@"):
        path = argument[1:]
        with _opened(path) as stream:
            return _decoded(_read(stream, path), path)
    if not _is_unicode(argument):
        raise WrongUsage("the text is not UTF-8")
    return argument


@contextmanager
def lines_of(path: str) -> Iterator[Iterator[Line]]:
    """The requests of a file, `-` for standard input. Blank lines count but are passed over."""
    with _opened(path) as stream:
        yield (_line(number, raw) for number, raw in enumerate(_raw_lines(stream, path), start=1) if raw.strip())


def check_key(key: str) -> None:
    """Raises WrongUsage for a key that no header can carry; an empty one would be no key at all."""
    if not (key.isascii() and key.isprintable() and key == key.strip() and key):
        raise WrongUsage("a key is made of printable ASCII characters, without space at its ends")


def _line(number: int, raw: bytes) -> Line:
    try:
        # A byte order mark, as Windows writes it before the first line, is no part of the request.
        written = Written.model_validate_json(raw.removeprefix(b"\xef\xbb\xbf"))
        if written.key is not None:
            check_key(written.key)
    except ValidationError as error:
        return Line(number, wrong=_told(error))
    except WrongUsage as error:
        return Line(number, wrong=str(error))
    return Line(number, written)


def _told(error: ValidationError) -> str:
    return "; ".join(
        ": ".join((*map(str, problem["loc"]), problem["msg"]))
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    )


def _raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        yield from stream
    except OSError as error:
        raise WrongUsage(f"cannot read {name}: {_why(error)}") from None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield _standard_input()
        return
    try:
        stream = Path(path).expanduser().open("rb")
    except (OSError, ValueError) as error:
        raise WrongUsage(f"cannot read {path or 'a file without a name'}: {_why(error)}") from None
    with stream:
        yield stream


def _read(stream: BinaryIO, name: str) -> bytes:
    try:
        content = stream.read(LONGEST_TEXT_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"cannot read {name}: {_why(error)}") from None
    if len(content) > LONGEST_TEXT_BYTES:
        raise WrongUsage(f"{name} is longer than {LONGEST_TEXT_BYTES} bytes: no request is that long")
    return content


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise WrongUsage("standard input is closed")
    return sys.stdin.buffer


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"{name} is not UTF-8 (byte {error.start}): convert it first, for instance with iconv"
        ) from None


def _is_unicode(text: str) -> bool:
    # The shell's bytes that are not UTF-8 arrive as lone surrogates.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
